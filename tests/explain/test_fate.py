"""What became of a planned item, by receipts, looks and the target's process."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.explain.made import EPOCH, NOON, asked, item, looked, miss, receipt, standing
from warmup_lib.causes import Cause
from warmup_lib.explain.fate import fate
from warmup_lib.explain.miss import Miss
from warmup_lib.explain.standing import Live, Standing
from warmup_lib.layers.heads import NOT_SERVED, SHORT
from warmup_lib.layers.prefixes import BEYOND

ITEM = item()
HEAD = item(layer="prefixes")
AT = (ITEM.item_id, "redis")


def seen(**fields: Any) -> Miss:
    """Return a miss of which the gateway told."""
    return miss(asked(**fields), looked("k"))


def cause(one: Miss, known: Standing, planned: Any = ITEM) -> Cause | None:
    found = fate(planned, one, known)
    assert found is None or found.item_id == planned.item_id
    return found.cause if found else None


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (None, Cause.NOT_APPLIED),
        (receipt("failed", error="no vector of this text"), Cause.APPLY_FAILED),
        (receipt("skipped", error="who knows"), Cause.NOT_APPLIED),
        (receipt(), Cause.EVICTED),
        (receipt("already"), Cause.EVICTED),
        (receipt(minutes=1), Cause.NOT_APPLIED),
        (receipt(minutes=-61), Cause.EXPIRED),
        (receipt(minutes=-60), Cause.EXPIRED),
        (receipt(minutes=-59), Cause.EVICTED),
        (receipt(target_epoch="run-0"), Cause.FLUSHED),
        (receipt(minutes=-61, target_epoch="run-0"), Cause.EXPIRED),
    ],
)
def test_a_receipt_and_the_time_of_the_request_tell(held: Any, expected: Cause) -> None:
    receipts = {} if held is None else {AT: held}
    assert cause(seen(), standing([ITEM], receipts)) == expected


def test_what_was_found_there_already_may_be_older_than_its_receipt() -> None:
    assert cause(seen(), standing([ITEM], {AT: receipt("already", minutes=5)})) == Cause.EVICTED


def test_a_redis_without_its_mark_was_flushed_but_not_before_it_still_served() -> None:
    known = standing([ITEM], {AT: receipt()}, redis=Live(EPOCH, "redis", emptied=True))
    assert cause(seen(), known) == Cause.FLUSHED
    known.survived = {"redis": NOON + timedelta(minutes=1)}
    assert cause(seen(), known) == Cause.EVICTED


def test_evidence_says_how_many_keys_were_evicted() -> None:
    known = standing([ITEM], {AT: receipt()}, redis=Live(EPOCH, "redis", evicted=7))
    found = fate(ITEM, seen(), known)
    assert found is not None
    assert found.evidence == "absent inside its lifetime evicted_keys=+7"


def looks_at(resident: bool, evidence: str = "absent", minutes: int = 10) -> dict[Any, Any]:
    at = NOON + timedelta(minutes=minutes)
    return {AT: {"resident": resident, "evidence": evidence, "probed_at": at}}


@pytest.mark.parametrize(
    ("residency", "expected"),
    [
        (looks_at(False), Cause.EVICTED),
        (looks_at(True), None),
        (looks_at(False, minutes=31), Cause.EXPIRED),
        (looks_at(False, "vector of 8 bytes, 2048 expected"), Cause.KEY_ENCODER),
        (looks_at(False, "made from other content"), Cause.NOT_APPLIED),
    ],
)
def test_a_replay_is_judged_by_the_look_before_it_not_by_the_logs_time(
    residency: Any, expected: Cause | None
) -> None:
    old = asked(ts=NOON - timedelta(days=300))
    assert cause(miss(old), standing([ITEM], {AT: receipt()}, residency)) == expected


def test_a_replay_on_another_process_tells_a_restart() -> None:
    known = standing([ITEM], {AT: receipt()}, looks_at(False), redis=Live("run-2", "redis"))
    assert cause(miss(), known) == Cause.FLUSHED


def test_a_redis_that_holds_nothing_of_what_was_written_was_flushed() -> None:
    other = item(layer="embeddings")
    places = [AT, (other.item_id, "redis")]
    gone = {p: looks_at(False)[AT] for p in places}
    receipts = dict.fromkeys(places, receipt())
    assert cause(miss(), standing([ITEM, other], receipts, gone)) == Cause.FLUSHED
    kept = gone | {places[1]: looks_at(True)[AT]}
    assert cause(miss(), standing([ITEM, other], receipts, kept)) == Cause.EVICTED


HOSTS = {"one": "host", "two": "host", "redis": "redis"}


def on_host(**fields: Any) -> Miss:
    return miss(None, looked("", "prefixes"), layer="prefixes", target="one", **fields)


def test_a_head_that_another_host_has_is_on_the_other_host() -> None:
    receipts = {(HEAD.item_id, "two"): receipt(ttl_s=None)}
    found = fate(HEAD, on_host(), standing([HEAD], receipts, kinds=HOSTS))
    assert found is not None
    assert (found.cause, found.evidence) == (Cause.OTHER_HOST, "asked=one warm_on=two")
    failed = receipts | {(HEAD.item_id, "one"): receipt("failed", error="x")}
    assert cause(on_host(), standing([HEAD], failed, kinds=HOSTS), HEAD) == Cause.APPLY_FAILED


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SHORT, Cause.SUB_BLOCK),
        (f"{BEYOND}: needs 9 blocks, 2 left", Cause.BELOW_BUDGET),
        (NOT_SERVED, Cause.NOT_APPLIED),
    ],
)
def test_why_a_host_could_not_have_a_head(error: str, expected: Cause) -> None:
    receipts = {(HEAD.item_id, "one"): receipt("skipped", error=error)}
    assert cause(on_host(), standing([HEAD], receipts, kinds=HOSTS), HEAD) == expected


def test_a_host_that_restarted_lost_its_heads_and_one_that_did_not_evicted_them() -> None:
    held = receipt(ttl_s=None, target_epoch="100.5")
    known = standing([HEAD], {(HEAD.item_id, "one"): held}, kinds=HOSTS, one=Live("100.5", "host"))
    assert cause(on_host(cached_tokens=0), known, HEAD) == Cause.EVICTED
    known.targets = {"one": Live("200.5", "host")}
    assert cause(on_host(cached_tokens=0), known, HEAD) == Cause.HOST_RESTARTED


def test_nothing_is_said_of_a_target_that_nobody_knows() -> None:
    assert cause(miss(target=None), standing([ITEM])) is None
