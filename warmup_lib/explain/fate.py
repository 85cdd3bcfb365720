"""What became of a planned item: never applied, failed, run out, lost, or dropped."""

from __future__ import annotations

from datetime import datetime

from warmup_lib.causes import Cause
from warmup_lib.explain.miss import PREFIXES, Miss, Verdict
from warmup_lib.explain.standing import WARM, Row, Standing, ends
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.heads import NOT_SERVED, SHORT
from warmup_lib.layers.prefixes import BEYOND as BEYOND_KV
from warmup_lib.layers.segments import BEYOND as BEYOND_SEGMENTS
from warmup_lib.verify.residency import UNFINISHED


def fate(item: PlanItem, miss: Miss, standing: Standing) -> Verdict | None:
    """Return why a planned item was not there; None: as far as is known it was.

    Args:
        item: The item that should have served the request.
        miss: The request.
        standing: What is known of the plan's items.
    """
    target = miss.target
    if target is None:
        return None
    receipt = standing.receipts.get((item.item_id, target))
    found = (
        _not_applied(item, miss, receipt, standing, target)
        if receipt is None or receipt["status"] not in WARM
        else _gone(item, miss, receipt, standing, target)
    )
    return None if found is None else Verdict(*found, item.item_id)


Found = tuple[Cause, str]


def _not_applied(
    item: PlanItem, miss: Miss, receipt: Row | None, standing: Standing, target: str
) -> Found:
    if receipt is not None and receipt["status"] == "failed":
        return Cause.APPLY_FAILED, f"receipt=failed error={_word(receipt['error'])}"
    if (other := standing.elsewhere(item, target)) is not None:
        return Cause.OTHER_HOST, f"asked={target} warm_on={other}"
    if receipt is None:
        return Cause.NOT_APPLIED, "receipt=none"
    reason = str(receipt["error"] or "")
    if reason == SHORT:
        return Cause.SUB_BLOCK, "receipt=skipped: shorter than one cache block"
    if reason.startswith((BEYOND_KV, BEYOND_SEGMENTS)):
        return Cause.BELOW_BUDGET, "receipt=skipped: beyond what this target keeps"
    if reason == NOT_SERVED and miss.layer == PREFIXES:
        return Cause.NOT_APPLIED, "receipt=skipped: this host does not serve its model"
    return Cause.NOT_APPLIED, f"receipt=skipped error={_word(reason)}"


def _gone(
    item: PlanItem, miss: Miss, receipt: Row, standing: Standing, target: str
) -> Found | None:
    at = _moment(item, miss, standing, target)
    late = (receipt["at"] - at).total_seconds()
    if miss.evidence is not None and late > 0 and receipt["status"] == "warmed":
        return Cause.NOT_APPLIED, f"applied_after_s={late:.0f}"
    if ends(receipt) <= at:
        over = (at - ends(receipt)).total_seconds()
        return Cause.EXPIRED, f"ttl_s={receipt['ttl_s']} over_for_s={over:.0f}"
    epoch = _epoch(miss, standing, target)
    if epoch is not None and epoch != receipt["target_epoch"]:
        on_host = miss.layer == PREFIXES
        cause = Cause.HOST_RESTARTED if on_host else Cause.FLUSHED
        return cause, f"epoch_warmed={receipt['target_epoch']} epoch={epoch}"
    if miss.evidence is None:
        return _looked_at(item, miss, standing, target)
    return _dropped(item, miss, standing, target)


def _looked_at(item: PlanItem, miss: Miss, standing: Standing, target: str) -> Found | None:
    """Judge by the look that verifying took, just before the replay."""
    row = standing.residency.get((item.item_id, target))
    if row is None or row["evidence"] == UNFINISHED:
        return None
    if row["resident"]:
        return _since(miss)
    if row["evidence"].startswith("vector of "):
        return Cause.KEY_ENCODER, "the entry holds a vector of another size"
    if row["evidence"] == "made from other content":
        return Cause.NOT_APPLIED, "the entry holds older content"
    return _dropped(item, miss, standing, target)


def _since(miss: Miss) -> Found | None:
    """Judge what was there when it was looked at, and not when it was replayed after that.

    On a Redis nothing is lost between the two, so that something else is wrong.
    """
    if miss.layer == PREFIXES and miss.cached_tokens is not None:
        return Cause.EVICTED, f"proven, then cached_tokens={miss.cached_tokens}"
    return None


def _dropped(item: PlanItem, miss: Miss, standing: Standing, target: str) -> Found:
    if miss.layer == PREFIXES:
        return Cause.EVICTED, f"cached_tokens={miss.cached_tokens}"
    if standing.flushed(target, _moment(item, miss, standing, target)):
        return Cause.FLUSHED, "one process, and nothing of the plan is left"
    live = standing.targets.get(target)
    evicted = live.evicted if live is not None else None
    told = "" if evicted is None else f" evicted_keys={evicted:+d}"
    return Cause.EVICTED, f"absent inside its lifetime{told}"


def _moment(item: PlanItem, miss: Miss, standing: Standing, target: str) -> datetime:
    """Return when the item was not found: a replay asks now, whatever the log's time was."""
    if miss.evidence is not None:
        return miss.asked.ts
    row = standing.residency.get((item.item_id, target))
    return standing.as_of if row is None else row["probed_at"]


def _epoch(miss: Miss, standing: Standing, target: str) -> str | None:
    """Return the process that was asked; None: not known."""
    live = standing.targets.get(target)
    now = live.epoch if live is not None else None
    if miss.evidence is None:
        return now
    seen = miss.evidence
    return (seen.host_epoch if miss.layer == PREFIXES else seen.redis_epoch) or now


def _word(error: object) -> str:
    """Return an error as receipts have it, which holds no text of a request, on one line."""
    return " ".join(str(error or "unknown").split())[:120]
