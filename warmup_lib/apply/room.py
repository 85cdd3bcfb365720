"""Whether a plan fits the memory of each Redis, asked before anything is written or generated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warmup_lib.errors import BudgetExceeded, TargetUnavailable
from warmup_lib.layers.base import Context, Layer, PlanItem
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import EVICTED_KEYS, RedisStore, StoreFacts

Shares = Mapping[str, Sequence[tuple[Layer, Sequence[PlanItem]]]]
"""By target, its layers, each with its items."""

_LOOK_AT_ONCE = 500


@dataclass(frozen=True)
class Room:
    """What was found.

    Attributes:
        notes: Sentences for the user.
        evicted: By target, its epoch and how many keys it had evicted before the apply.
    """

    notes: Sequence[str]
    evicted: Mapping[str, Mapping[str, Any]]


async def check_room(targets: Sequence[Target], shares: Shares, context: Context) -> Room:
    """Look whether the plan's items fit each Redis that answers.

    Args:
        targets: The targets; one that does not answer yet is not checked.
        shares: What each of them is to get.
        context: What the layers need to look for what is there already.

    Raises:
        BudgetExceeded: A Redis has no room for them.
    """
    notes: list[str] = []
    evicted = {}
    for target in targets:
        if not isinstance(target, RedisStore) or not shares[target.name]:
            continue
        try:
            facts, epoch = await target.facts(), await target.epoch()
            resident = await _resident(target, shares[target.name], context)
        except TargetUnavailable:
            notes.append(f"target '{target.name}' did not answer: its room was not checked")
            continue
        items = [item for _, share in shares[target.name] for item in share]
        notes += judge(context.plan_id, target.name, facts, items, resident)
        evicted[target.name] = {"epoch": epoch, EVICTED_KEYS: facts.evicted}
    return Room(notes, evicted)


def judge(
    plan_id: str,
    target: str,
    facts: StoreFacts,
    items: Sequence[PlanItem],
    resident: frozenset[str],
) -> list[str]:
    """Return what to tell the user of the room on one Redis.

    One that evicts nothing must take what is missing beside all that it holds. One that evicts is
    full in everyday use and makes room by dropping other keys, but a plan that is larger than its
    limit would drop itself.

    Args:
        plan_id: The plan.
        target: The target's name.
        facts: What the Redis says of itself.
        items: What it is to hold.
        resident: Item ids of those that it holds already.

    Raises:
        BudgetExceeded: It has no room.
    """
    if not facts.maxmemory:
        return []
    needed = sum(item.bytes for item in items if item.item_id not in resident)
    whole = sum(item.bytes for item in items)
    evicts = facts.policy != "noeviction"
    over = facts.used + needed > facts.maxmemory
    numbers = (
        f"it needs {needed:,} bytes more, {facts.used:,} are used, the limit is "
        f"{facts.maxmemory:,}, the policy {facts.policy}"
    )
    if whole > facts.maxmemory or (over and not evicts):
        raise BudgetExceeded(
            f"plan {plan_id} does not fit target '{target}': {numbers}; nothing was written; raise "
            "maxmemory, or plan fewer items (layers.*.items)"
        )
    if over:
        return [f"target '{target}' will evict keys, perhaps of this plan: {numbers}"]
    if evicts:
        return [
            f"target '{target}' may evict what is warmed when it gets full: its policy is "
            f"{facts.policy}"
        ]
    return []


async def _resident(
    target: RedisStore, share: Sequence[tuple[Layer, Sequence[PlanItem]]], context: Context
) -> frozenset[str]:
    found: set[str] = set()
    for layer, items in share:
        for start in range(0, len(items), _LOOK_AT_ONCE):
            batch = items[start : start + _LOOK_AT_ONCE]
            proofs = await layer.prove(batch, target, context)
            found |= {proof.item_id for proof in proofs if proof.resident}
    return frozenset(found)
