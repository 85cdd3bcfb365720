"""The lake's figures of one plan as metrics: they outlive the batch jobs that found them.

All are gauges: counts and shares as the tables have them, by layer, target and a bounded number of
tenants. What a report says in words, or of single requests, is not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.observe.instruments import (
    CACHE_BACKEND,
    CACHE_LAYER,
    MISS_CAUSE,
    PLAN,
    TENANT,
    WARMUP_LAYER,
    WARMUP_TIER,
)
from warmup_lib.tables import MICRO, reason_word

ON_HOSTS = frozenset({"weights", "adapters", "prefixes"})
"""Layers that a model host holds; the others lie on a Redis."""

MOST_TENANTS = 50
"""Tenants with most requests that get figures of their own; the rest is `other`."""

_HOT = 5.0
"""Hits a day from which on an item's interval is judged, as `verify` has it."""

DESCRIPTIONS: Mapping[str, str] = {
    "warmup.plan.info": "1, for the plan that the other figures are of",
    "warmup.verified.timestamp": "When the plan was last looked at on its targets",
    "warmup.items.planned": "Items of the plan, of each target that was looked at",
    "warmup.items.resident": "Items proven resident",
    "warmup.completion": "Resident items / planned items",
    "warmup.tenant.completion": "The same by tenant",
    "warmup.receipts": "Items by what the last apply did with them",
    "warmup.left_out": "Candidates that were not chosen, by the reason's word",
    "warmup.window.requests": "Later requests that asked, as verify counted them",
    "warmup.window.hits": "Of these, served by a planned item",
    "warmup.window.hit_ratio": "Hits / requests of the later traffic",
    "warmup.tenant.requests": "Later requests that asked, by tenant",
    "warmup.tenant.hits": "Of these, served by a planned item",
    "warmup.causes": "Later requests that missed, by cause",
    "warmup.forecast.expected": "Hits a day that the plan expects of its main items",
    "warmup.forecast.realised": "Hits that came on the day that was verified",
    "warmup.forecast.inside": "Share of hot items whose hits lie in their interval of 4 in 5",
    "warmup.gate": "What must hold, as the settings have it",
}
"""Every figure, with its meaning."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One number with its attributes."""

    name: str
    value: float
    attributes: Mapping[str, str]


def newest_plan(lake: Lake) -> str | None:
    """Return the plan that was looked at last, else the one named last; None: there is none."""
    seen = [p["plan_id"] for p in lake.partitions("residency")]
    looked = {plan: _last_look(lake, plan) for plan in seen}
    return max(looked, key=lambda plan: (looked[plan], plan)) if looked else lake.latest_plan()


def figures(lake: Lake, config: Config, keys: Keys, plan_id: str) -> list[Figure]:
    """Return what the lake holds of a plan; parts that were not run yet are absent.

    Args:
        lake: The lake.
        config: The settings, for the gates.
        keys: Tells the hash of a tenant.
        plan_id: The plan.
    """
    partition = {"plan_id": plan_id}
    plan = lake.read("plan", partition, _PLAN_COLUMNS).to_pylist()
    found = [Figure("warmup.plan.info", 1, {PLAN: plan_id})]
    gates = config.gates.model_dump()
    found += [Figure("warmup.gate", float(v), {"warmup.gate": k}) for k, v in gates.items()]
    receipts = lake.read("receipts", partition, ["layer", "target", "status"]).to_pylist()
    looks = lake.read("residency", partition, _LOOK_COLUMNS).to_pylist()
    if looks:
        found += _completion(plan, looks, {(r["layer"], r["target"]) for r in receipts}, keys)
    found += _counts("warmup.receipts", receipts, lambda r: (r["layer"], r["target"], r["status"]),
                     (WARMUP_LAYER, CACHE_BACKEND, "warmup.status"))  # fmt: skip
    left = lake.read("left_out", partition, ["layer", "reason"]).to_pylist()
    found += _counts("warmup.left_out", left, lambda r: (r["layer"], reason_word(r["reason"])),
                     (WARMUP_LAYER, "warmup.reason"))  # fmt: skip
    window = _last_window(lake, plan_id)
    if window is not None:
        hits = lake.read("hits", partition | window, _HIT_COLUMNS).to_pylist()
        found += _hits(hits, keys)
        causes = lake.read("causes", partition | window, ["layer", "tier", "cause"]).to_pylist()
        found += _counts("warmup.causes", causes, lambda r: (r["layer"], r["tier"], r["cause"]),
                         (WARMUP_LAYER, WARMUP_TIER, MISS_CAUSE))  # fmt: skip
        if _whole_day(lake, partition | window):  # forecasts are of whole days
            found += _forecast(plan, hits)
    return found


_PLAN_COLUMNS = ("item_id", "layer", "tenant", "tier", "expected_micro", "expected_low",
                 "expected_high")  # fmt: skip
_LOOK_COLUMNS = ("item_id", "layer", "target", "resident", "probed_at")
_HIT_COLUMNS = ("layer", "tier", "tenant", "target", "hit", "item_id")


def _last_look(lake: Lake, plan_id: str) -> float:
    looked = lake.read("residency", {"plan_id": plan_id}, ["probed_at"])["probed_at"].to_pylist()
    return max((at.timestamp() for at in looked), default=0.0)


def _last_window(lake: Lake, plan_id: str) -> dict[str, str] | None:
    """Return the last whole day that was verified; without one the last log file."""
    found = [p for p in lake.partitions("hits") if p["plan_id"] == plan_id]
    ranked = [(_whole_day(lake, p), _last_day(p["window"]), p["window"]) for p in found]
    return {"window": max(ranked)[-1]} if ranked else None


def _whole_day(lake: Lake, partition: Mapping[str, str]) -> bool:
    manifest = lake.manifest("hits", partition)
    return manifest is not None and bool(manifest.meta.get("whole_day"))


def _last_day(window: str) -> str:
    """Return the last day of a window, whose name begins with its days."""
    return window.rpartition("..")[2][:10]


def _completion(
    plan: Sequence[Row], looks: Sequence[Row], applied: set[tuple[str, str]], keys: Keys
) -> Iterator[Figure]:
    """Yield completion by layer and target.

    One that was warmed and did not answer when it was looked at has nothing resident.
    """
    yield Figure("warmup.verified.timestamp", max(r["probed_at"].timestamp() for r in looks), {})
    resident = {(r["item_id"], r["target"]) for r in looks if r["resident"]}
    for layer, target in sorted({(r["layer"], r["target"]) for r in looks} | applied):
        ours = [item for item in plan if item["layer"] == layer]
        about = _about(layer) | {CACHE_BACKEND: target}
        held = Counter(i["tenant"] for i in ours if (i["item_id"], target) in resident)
        planned = Counter(i["tenant"] for i in ours)
        yield Figure("warmup.items.planned", len(ours), about)
        yield Figure("warmup.items.resident", held.total(), about)
        yield Figure("warmup.completion", held.total() / len(ours), about)
        folded = _folded(planned, held, keys)
        for tenant, (of, have) in folded.items():
            yield Figure("warmup.tenant.completion", have / of, about | {TENANT: tenant})


def _hits(rows: Sequence[Row], keys: Keys) -> Iterator[Figure]:
    for layer, tier in sorted({(r["layer"], r["tier"] or "") for r in rows}):
        ours = [r for r in rows if (r["layer"], r["tier"] or "") == (layer, tier)]
        about = _about(layer, tier)
        requests = Counter(r["tenant"] for r in ours)
        hits = Counter(r["tenant"] for r in ours if r["hit"])
        yield Figure("warmup.window.requests", len(ours), about)
        yield Figure("warmup.window.hits", hits.total(), about)
        yield Figure("warmup.window.hit_ratio", hits.total() / len(ours), about)
        for tenant, (of, have) in _folded(requests, hits, keys).items():
            yield Figure("warmup.tenant.requests", of, about | {TENANT: tenant})
            yield Figure("warmup.tenant.hits", have, about | {TENANT: tenant})


def _forecast(plan: Sequence[Row], hits: Sequence[Row]) -> Iterator[Figure]:
    """Yield what the plan expected of the layers in which every request is looked up."""
    served = Counter(
        (r["item_id"], r["target"]) for r in hits if r["hit"] and r["item_id"] and not r["tier"]
    )
    came: dict[str, int] = {}
    for (item, _), count in served.items():  # all targets hold the same: the busiest one counts
        came[item] = max(count, came.get(item, 0))
    for layer in sorted({r["layer"] for r in hits if not r["tier"]} - ON_HOSTS - {"retrieval"}):
        ours = [i for i in plan if i["layer"] == layer and not i["tier"]]
        about = _about(layer)
        expected = sum(i["expected_micro"] for i in ours) / MICRO
        yield Figure("warmup.forecast.expected", expected, about)
        yield Figure(
            "warmup.forecast.realised", sum(came.get(i["item_id"], 0) for i in ours), about
        )
        hot = [i for i in ours if i["expected_micro"] >= _HOT * MICRO]
        if hot:
            inside = [i["expected_low"] <= came.get(i["item_id"], 0) <= i["expected_high"]
                      for i in hot]  # fmt: skip
            yield Figure("warmup.forecast.inside", sum(inside) / len(hot), about)


def _counts(
    name: str,
    rows: Iterable[Row],
    of: Callable[[Row], tuple[str | None, ...]],
    attributes: Sequence[str],
) -> Iterator[Figure]:
    for values, count in sorted(Counter(map(of, rows)).items(), key=str):
        told = {k: v for k, v in zip(attributes, values, strict=True) if v is not None}
        yield Figure(name, count, told | {CACHE_LAYER: _place(told[WARMUP_LAYER])})


def _folded(total: Counter[str], part: Counter[str], keys: Keys) -> dict[str, tuple[int, int]]:
    """Return both counts by the hash of the tenant; those beyond the bound are one, `other`."""
    ordered = sorted(total, key=lambda tenant: (-total[tenant], tenant))
    named = {keys.scope(t): (total[t], part[t]) for t in ordered[:MOST_TENANTS]}
    if rest := ordered[MOST_TENANTS:]:
        named["other"] = (sum(total[t] for t in rest), sum(part[t] for t in rest))
    return named


def _about(layer: str, tier: str = "") -> dict[str, str]:
    told = {CACHE_LAYER: _place(layer), WARMUP_LAYER: layer}
    return told | {WARMUP_TIER: tier} if tier else told


def _place(layer: str) -> str:
    return "host" if layer in ON_HOSTS else "redis"
