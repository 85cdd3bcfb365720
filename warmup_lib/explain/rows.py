"""The rows of `causes`, and what is counted over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.bypass import by_header, pragma_in
from warmup_lib.causes import Cause
from warmup_lib.evidence import Evidence
from warmup_lib.explain.miss import Asked, Miss, Verdict
from warmup_lib.explain.misses import evidence_of
from warmup_lib.explain.places import own_keys
from warmup_lib.keys import key_hash
from warmup_lib.places import Places
from warmup_lib.tables import CAUSES

Row = dict[str, Any]

GATEWAY, REPLAY = "gateway", "replay"

_LONGEST = 240


def missed(miss: Miss, verdict: Verdict, places: Places) -> Row:
    """Return the row of a miss."""
    asked = [look.key for look in miss.looks] or list(own_keys(miss, places))
    return {
        "request_id": miss.asked.request_id,
        "ts": miss.asked.ts,
        "tenant": miss.asked.tenant,
        "layer": miss.layer,
        "tier": miss.tier,
        "target": miss.target,
        "cause": verdict.cause.value,
        "evidence": verdict.evidence[:_LONGEST],
        "source": GATEWAY if miss.evidence is not None else REPLAY,
        "item_id": verdict.item_id,
        "key_hash": key_hash(asked[0]) if asked else None,
    }


def not_looked(asked: Asked, verdict: Verdict, layers: Sequence[str]) -> list[Row]:
    """Return the rows of a request for which no look was made, one for each layer it has."""
    return [
        {
            "request_id": asked.request_id,
            "ts": asked.ts,
            "tenant": asked.tenant,
            "layer": layer,
            "tier": None,
            "target": None,
            "cause": verdict.cause.value,
            "evidence": verdict.evidence,
            "source": GATEWAY,
            "item_id": None,
            "key_hash": None,
        }
        for layer in layers
    ]


def bypassed(rows: pa.Table) -> Iterable[tuple[Asked, Verdict]]:
    """Yield the requests that went round the caches because something told them to."""
    for row in rows.select(list(Asked._fields)).to_pylist():
        asked = Asked(**row)
        yield asked, _bypass(asked, evidence_of(asked.extra))


def _bypass(asked: Asked, evidence: Evidence | None) -> Verdict:
    said = evidence.bypass if evidence is not None else None
    if said == "header" or (said is None and by_header(asked.cache_control, _pragma(asked.extra))):
        return Verdict(Cause.BYPASS_HEADER, "a header asks for it")
    return Verdict(Cause.BYPASS_PARAMETER, "a parameter asks for it")


def _pragma(extra: str | None) -> str | None:
    held = json.loads(extra) if extra is not None and "pragma" in extra.casefold() else None
    return pragma_in(held) if isinstance(held, Mapping) else None


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Return rows as the table has them."""
    return pa.Table.from_pylist(list(rows), schema=CAUSES.schema)


def facts(table: pa.Table) -> dict[str, Any]:
    """Return the counts that a report gives: of causes, over all and by layer and tier.

    `unknown_share` is 0 where there are no misses.
    """
    total = counts(table)
    layers = pc.binary_join_element_wise(
        table["layer"], pc.fill_null(table["tier"], ""), " "
    ).to_pylist()
    named = table.append_column("place", pa.array([one.strip() for one in layers], pa.string()))
    return {
        "misses": table.num_rows,
        "causes": total,
        "remedies": remedies(total),
        "unknown_share": total.get(Cause.UNKNOWN, 0) / table.num_rows if table.num_rows else 0.0,
        "by_layer": {
            place: counts(named.filter(pc.equal(named["place"], place)))
            for place in sorted(set(named["place"].to_pylist()))
        },
        "seen_at_the_time": pc.sum(pc.equal(table["source"], GATEWAY)).as_py() or 0,
    }


def counts(table: pa.Table) -> dict[str, int]:
    """Return how often each cause is there, the most frequent one first."""
    grouped = table.group_by("cause").aggregate([("cause", "count")]).to_pylist()
    ranked = sorted(grouped, key=lambda row: (-row["cause_count"], row["cause"]))
    return {row["cause"]: int(row["cause_count"]) for row in ranked}


def remedies(causes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return what to do about each cause, the most frequent one first."""
    return [
        {
            "cause": name,
            "count": count,
            "meaning": Cause(name).meaning,
            "remedy": Cause(name).remedy,
            "link": Cause(name).link,
        }
        for name, count in causes.items()
    ]
