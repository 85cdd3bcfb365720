"""Has every source propose: reads the user's lists, joins them to the demand, and asks each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.layers.demand import Demand
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import joined, place_of
from warmup_lib.plan.sources.base import Material
from warmup_lib.plan.sources.proposed import Proposals
from warmup_lib.plan.sources.registry import switched_on
from warmup_lib.plan.sources.scores import SCHEMA, read_scores
from warmup_lib.tables import BOOL

_REDACTED = "redacted"
_COUNTS = ("requests", "cache_hits", "bypassed", "failed", "heat_micro")
_LISTED_ANSWERS = "responses"
"""The layer for which a list makes answers be generated."""


def propose(
    lake: Lake,
    demand: Demand,
    config: Config,
    first: str,
    *,
    tenants: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> tuple[Demand, Proposals]:
    """Return the demand with what the user's lists name, and what the sources propose of it.

    What the log does not hold has no heat. An answer that a list gives goes before a logged one.

    Args:
        lake: The lake.
        demand: What the log asks for.
        config: The settings.
        first: First day of the history, ISO date.
        tenants: Only these; None: all.
        models: Only these; None: all.
    """
    sources = switched_on(config)
    listed = _listed(lake, demand.day, [one.name for one in sources], tenants, models)
    prompts, prompt_of = _with(demand.prompts, "response_digest", listed)
    heads, head_of = _with(demand.heads, "head_digest", listed)
    scores = SCHEMA.empty_table()
    if config.plan.sources.system_prompts.enabled:
        scores = _scores(lake, first, demand.day, tenants, models)
    vectors = demand.vectors if demand.encoder else None
    material = Material(
        prompts, heads, listed, prompt_of, head_of, scores, vectors, demand.dimension
    )
    by = {one.name: one.propose(material, config) for one in sources}
    named = np.zeros(prompts.num_rows, np.bool_)
    for one in sources:
        if _LISTED_ANSWERS in one.layers and len(material.of_list(one.name)):
            named |= by[one.name].prompts
    prompts = _answered(prompts, listed, prompt_of, named)
    asked = prompts.append_column("listed", pa.array(named, BOOL))
    return replace(demand, prompts=asked, heads=heads), Proposals(prompts, heads, by, config)


def _listed(
    lake: Lake,
    day: str,
    sources: Sequence[str],
    tenants: Sequence[str] | None,
    models: Sequence[str] | None,
) -> pa.Table:
    rows = lake.read("listed", {"day": day})
    for name, values in (("source", sources), ("tenant", tenants), ("model", models)):
        if values is not None:
            rows = rows.filter(pc.is_in(rows[name], value_set=pa.array(values, pa.string())))
    return rows


def _scores(
    lake: Lake,
    first: str,
    day: str,
    tenants: Sequence[str] | None,
    models: Sequence[str] | None,
) -> pa.Table:
    connection = lake.sql()
    try:
        return read_scores(connection, first, day, tenants, models)
    finally:
        connection.close()


def _with(rows: pa.Table, key: str, listed: pa.Table) -> tuple[pa.Table, Ints]:
    """Return rows of the demand with those that only lists name, and where each list row is."""
    known = joined(rows["tenant"], rows[key])
    wanted = joined(listed["tenant"], listed[key])
    place = place_of(wanted, known)
    names = np.asarray(pc.is_valid(_naming(listed, key)), dtype=np.bool_)
    place[~names] = -1
    new: dict[str, int] = {}
    added: list[dict[str, Any]] = []
    for n in np.flatnonzero(names & (place < 0)):
        ident = wanted[int(n)].as_py()
        if ident not in new:
            new[ident] = rows.num_rows + len(added)
            added.append(_row(listed.slice(int(n), 1).to_pylist()[0]))
        place[n] = new[ident]
    more = pa.Table.from_pylist(added, schema=rows.schema)
    return pa.concat_tables([rows, more]), place


def _naming(listed: pa.Table, key: str) -> pa.ChunkedArray:
    """Return a column that is null where a list row names nothing of a kind."""
    if key == "response_digest":
        return listed[key]
    return pc.coalesce(listed["system_prompt"], listed["tools"])


def _row(listed: Mapping[str, Any]) -> dict[str, Any]:
    why = _REDACTED if listed["redacted"] else None
    return {**listed, **dict.fromkeys(_COUNTS, 0), "unwarmable": why}


def _answered(prompts: pa.Table, listed: pa.Table, prompt_of: Ints, named: Any) -> pa.Table:
    """Return prompts with the answers that lists give to what they name."""
    answers: dict[int, str] = {}
    for place, answer in zip(prompt_of.tolist(), listed["response"].to_pylist(), strict=True):
        if place >= 0 and answer and named[place]:
            answers.setdefault(place, answer)
    if not answers:
        return prompts
    mask = np.zeros(prompts.num_rows, np.bool_)
    mask[list(answers)] = True
    given = pa.array([answers[place] for place in sorted(answers)], pa.string())
    at = prompts.column_names.index("response")
    column = pc.replace_with_mask(prompts["response"].combine_chunks(), pa.array(mask), given)
    return prompts.set_column(at, "response", column)
