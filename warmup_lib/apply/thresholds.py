"""What tells readers from which similarity on a tenant's answers serve other questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warmup_lib.errors import TargetUnavailable
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.responses import Responses
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import Entry, RedisStore
from warmup_lib.threshold.force import Threshold, Thresholds


async def publish(
    items: Sequence[PlanItem], targets: Sequence[Target], context: Context
) -> dict[str, Any]:
    """Write the threshold in force of each tenant with answers to each Redis, as long as they live.

    A Redis that does not answer is left out: it is among those given up.

    Returns:
        By tenant: `threshold`, `bound` and `calibrated_at`, null where it is the configured one.
    """
    tenants = sorted({item.tenant for item in items if item.layer == Responses.name})
    known = context.thresholds or Thresholds(context.config.encoder.threshold)
    ttl_s = int(context.config.layers.responses.ttl.total_seconds())
    entries = [
        Entry(context.places.threshold(tenant), _fields(known.of(tenant)), ttl_s)
        for tenant in tenants
    ]
    for store in targets:
        if isinstance(store, RedisStore) and entries:
            try:
                await store.put(entries)
            except TargetUnavailable:
                continue
    return {tenant: _facts(known.of(tenant)) for tenant in tenants}


def _facts(one: Threshold) -> dict[str, Any]:
    return {"threshold": one.threshold, "bound": one.bound, "calibrated_at": one.day}


def _fields(one: Threshold) -> dict[str, bytes | str | float]:
    return {name: "" if value is None else value for name, value in _facts(one).items()}
