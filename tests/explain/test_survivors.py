"""Until when a Redis is known to have kept what was written to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from warmup_lib.evidence import FIELD, Evidence, Looked
from warmup_lib.explain.standing import Live, Standing
from warmup_lib.explain.survivors import survivors
from warmup_lib.keys import key_hash
from warmup_lib.tables import REQUESTS

NOON = datetime(2026, 3, 16, 12, tzinfo=UTC)


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def requests(*looks: tuple[int, str, str]) -> pa.Table:
    """Return one request a look: its minute, what it found, and its key."""
    rows: list[dict[str, Any]] = []
    for at, found, key in looks:
        evidence = Evidence((Looked("responses", found, key),))  # type: ignore[arg-type]
        extra = json.dumps({FIELD: evidence.to_dict()})
        rows.append(dict.fromkeys(REQUESTS.schema.names) | {"ts": minute(at), "extra": extra})
    return pa.Table.from_pylist(rows, schema=REQUESTS.schema)


def standing(*keys: str, emptied: bool = True) -> Standing:
    receipts = {
        (key, "redis"): {"status": "warmed", "key_hash": key_hash(key), "ttl_s": 9, "at": NOON}
        for key in keys
    }
    live = {"redis": Live("1", "redis", emptied)}
    return Standing({}, {}, receipts, {}, live, {"redis": "redis"}, NOON)


def test_a_hit_on_what_was_never_missing_shows_that_nothing_was_flushed_before() -> None:
    known = standing("a", "b")
    known.survived = survivors(
        requests((1, "absent", "a"), (5, "hit", "b"), (9, "absent", "b")), known
    )
    assert known.survived == {"redis": minute(5)}
    assert not known.flushed("redis", minute(1))
    assert not known.flushed("redis", minute(5))
    assert known.flushed("redis", minute(9))


def test_an_entry_that_was_missing_may_have_been_written_again() -> None:
    known = standing("a")
    found = survivors(requests((1, "absent", "a"), (5, "hit", "a")), known)
    assert found == {}
    assert known.flushed("redis", minute(1))


def test_hits_on_what_no_plan_wrote_show_nothing() -> None:
    assert survivors(requests((5, "hit", "gateway's own")), standing("a")) == {}


def test_requests_count_in_the_order_of_their_time() -> None:
    known = standing("a")
    assert survivors(requests((9, "absent", "a"), (5, "hit", "a")), known) == {"redis": minute(5)}


def test_without_a_sign_of_a_flush_there_was_none() -> None:
    assert not standing("a", emptied=False).flushed("redis", minute(9))
