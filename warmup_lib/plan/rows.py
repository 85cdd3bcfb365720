"""The rows that a plan writes, and the counts of them that its report and manifest give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.forecast.spread import Spread, interval
from warmup_lib.plan.offer import Offer, of_tier
from warmup_lib.plan.selection import Choice
from warmup_lib.plan.sources.registry import SOURCES
from warmup_lib.tables import INT, LEFT_OUT, MICRO, PLAN, REAL, STR, STRS, reason_word


def item_rows(offer: Offer, choice: Choice, spread: Spread, after: int = 0) -> pa.Table:
    """Return the chosen candidates as rows of the `plan` table, in order.

    Args:
        offer: What was chosen from.
        choice: What was chosen.
        spread: How hits scatter about what is expected.
        after: The rank of the layer's last item before these.
    """
    rows = offer.candidates.take(pa.array(choice.rows, INT))
    count = len(choice.rows)
    expected = choice.expected / MICRO
    variance = spread.variance(expected)
    low, high = interval(expected, variance)
    filled = {
        "rank": pa.array(range(after + 1, after + count + 1), INT),
        "expected_micro": pa.array(choice.expected, INT),
        "expected_variance": pa.array(variance, REAL),
        "expected_low": pa.array(low, INT),
        "expected_high": pa.array(high, INT),
        "reason": pa.array([offer.reason(choice, n) for n in range(count)], STR),
        "sources": pa.array(_sources(offer, choice), STRS),
    }
    for name, values in filled.items():
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows.cast(PLAN.schema)


def _sources(offer: Offer, choice: Choice) -> list[list[str] | None]:
    by_log = np.ones(len(choice.rows), np.bool_) if choice.by_log is None else choice.by_log
    return [
        offer.proposed.sources(int(row), bool(logged))
        for row, logged in zip(choice.rows, by_log, strict=True)
    ]


def left_out_rows(
    offer: Offer,
    choice: Choice,
    warm: pa.Table,
    beyond: Mapping[int, str],
    blamed: Mapping[int, str] = MappingProxyType({}),
) -> pa.Table:
    """Return what was not chosen and is not warm already, as rows of the `left_out` table.

    The reason is `covered` where a chosen or a warm item serves it, else `below_budget`, with the
    budget where it is known, or `natural_traffic`.

    Args:
        offer: What was chosen from.
        choice: What was chosen.
        warm: What is warm already.
        beyond: Row of a candidate -> the budget that had no room for it.
        blamed: Row of a candidate -> why it was worth no room, where that is known.
    """
    covered = np.zeros(offer.candidates.num_rows, np.bool_)
    covered[choice.covered] = True
    out = np.ones(len(covered), np.bool_)
    out[choice.rows] = False
    warm_ids = warm["item_id"].combine_chunks()
    out &= ~np.asarray(pc.is_in(offer.candidates["item_id"], value_set=warm_ids), dtype=np.bool_)
    words = np.full(len(covered), offer.proposed.beyond, np.object_)
    for row, budget in beyond.items():
        words[row] = f"below_budget: {budget}"
    for row, why in blamed.items():
        words[row] = why
    reason = pc.if_else(pa.array(covered), "covered", pa.array(words, STR))
    table = offer.candidates.select(["layer", "tenant", "key_digest", "heat_micro"])
    return (
        table.append_column("reason", reason)
        .filter(pa.array(out))
        .rename_columns(LEFT_OUT.schema.names)
    )


def counted(items: pa.Table, left_out: pa.Table, layers: list[str]) -> dict[str, Any]:
    """Return the facts of a plan's rows: items, expected hits and bytes by layer, and by tenant.

    The expected hits of a layer are those of its main items: the tiers stand apart in `tiers`.
    """
    main = of_tier(items, None)
    return {
        "items": _by(items, "layer", None, layers),
        "expected_hits": {
            layer: round(micro / MICRO, 3)
            for layer, micro in _by(main, "layer", "expected_micro", layers).items()
        },
        "bytes": _by(items, "layer", "bytes", layers),
        "tiers": _tiers(items),
        "tenants": _by(items, "tenant", None, []),
        "sources": _sources_of(items),
        "left_out": _reasons(left_out, layers),
    }


def _sources_of(items: pa.Table) -> dict[str, dict[str, Any]]:
    """Return by source the items it proposes, by layer or tier, and how many `only` it does."""
    layers = pc.coalesce(items["tier"], items["layer"]).to_pylist()
    counts: dict[str, Counter[str]] = {}
    only: Counter[str] = Counter()
    for place, sources in zip(layers, items["sources"].to_pylist(), strict=True):
        for name in sources or ():
            counts.setdefault(name, Counter())[place] += 1
        if sources and len(sources) == 1:
            only[sources[0]] += 1
    return {
        name: {"items": dict(sorted(counts[name].items())), "only": only[name]}
        for name in SOURCES
        if name in counts
    }


def _tiers(items: pa.Table) -> dict[str, dict[str, Any]]:
    """Return layer, items and expected hits by tier."""
    grouped = items.filter(pc.is_valid(items["tier"])).group_by(["tier", "layer"])
    rows = grouped.aggregate([("expected_micro", "sum"), ("expected_micro", "count")])
    return {
        row["tier"]: {
            "layer": row["layer"],
            "items": int(row["expected_micro_count"]),
            "expected_hits": round(int(row["expected_micro_sum"]) / MICRO, 3),
        }
        for row in sorted(rows.to_pylist(), key=lambda row: str(row["tier"]))
    }


def _by(table: pa.Table, key: str, value: str | None, known: list[str]) -> dict[str, int]:
    grouped = table.group_by(key).aggregate([(value, "sum") if value else (key, "count")])
    name = f"{value}_sum" if value else f"{key}_count"
    found = {row[key]: int(row[name]) for row in grouped.to_pylist()}
    return {one: found.get(one, 0) for one in known or sorted(found)}


def _reasons(left_out: pa.Table, layers: list[str]) -> dict[str, dict[str, int]]:
    counts: Mapping[str, dict[str, int]] = {layer: {} for layer in layers}
    grouped = left_out.group_by(["layer", "reason"]).aggregate([("digest", "count")])
    for row in sorted(grouped.to_pylist(), key=lambda r: (r["layer"], r["reason"])):
        word, of_layer = reason_word(row["reason"]), counts[row["layer"]]
        of_layer[word] = of_layer.get(word, 0) + int(row["digest_count"])
    return dict(counts)
