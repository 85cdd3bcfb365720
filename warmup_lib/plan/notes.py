"""What a plan's report tells in sentences: what is not warmed, which floors are not reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.config.budgets import TenantConfig
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.natural import KEPT_WARM
from warmup_lib.plan.budgets import Shared
from warmup_lib.plan.parts import Part
from warmup_lib.plan.reserve import Reserve
from warmup_lib.tables import reason_word


def notes(
    parts: Sequence[Part],
    best: Shared,
    chosen: Shared,
    reserved: Mapping[str, Reserve],
    strangers: Mapping[str, TenantConfig],
    *,
    scoped: bool,
) -> tuple[str, ...]:
    """Return the sentences.

    Args:
        parts: The plan's parts.
        best: What would be chosen if nothing were warm.
        chosen: What was chosen.
        reserved: What backtests say of layers.
        strangers: The settings of tenants who ask for nothing.
        scoped: Whether the plan is for some tenants, models or days only.
    """
    backtests = (_backtest(layer, one, parts) for layer, one in reserved.items())
    return (
        *backtests,
        *_nothing_to_warm(parts, best),
        *(() if scoped else _unknown(strangers)),
        *_unasked(best, strangers),
        *_floors(chosen),
    )


def _backtest(layer: str, reserve: Reserve, parts: Sequence[Part]) -> str:
    kept = sum(
        int(pc.sum(pc.equal(part.refused["reason"], KEPT_WARM), min_count=0).as_py())
        for part in parts
        if part.name == layer
    )
    about = f"{layer}: {reserve.says}"
    if not kept:
        return about
    return (
        f"{about} That is a backtest of all that was asked for; {kept:,} that traffic keeps warm "
        f"({KEPT_WARM}) are not planned, so the plan is not the set that it compared."
    )


def _nothing_to_warm(parts: Sequence[Part], best: Shared) -> tuple[str, ...]:
    planned = {
        part.name for part, choice in zip(parts, best.choices, strict=True) if len(choice.rows)
    }
    return tuple(
        f"{part.name}: nothing to warm, {_why_nothing(part, beyond)}"
        for part, beyond in zip(parts, best.beyond, strict=True)
        if part.tier is None and part.name not in planned
    )


def _why_nothing(part: Part, beyond: Mapping[int, str]) -> str:
    if part.offer.proposed.quota == 0:
        return "its cache does better by itself"
    if beyond:
        return f"{' and '.join(sorted(set(beyond.values())))} left no room"
    if part.refused.num_rows and not part.offer.candidates.num_rows:
        words = sorted({reason_word(reason) for reason in part.refused["reason"].to_pylist()})
        return f"all of {part.refused.num_rows:,} are left out ({', '.join(words)})"
    return "no candidate is expected to be asked for"


def strangers(config: Config, demand: Demand) -> dict[str, TenantConfig]:
    """Return the settings of tenants who ask for nothing."""
    tables = (demand.prompts, demand.heads)
    asking = {name for table in tables for name in pc.unique(table["tenant"]).to_pylist()}
    return {name: one for name, one in config.plan.tenants.items() if name not in asking}


def _unknown(strangers: Mapping[str, TenantConfig]) -> tuple[str, ...]:
    set_of = {
        name: " and ".join(
            word for word, is_set in (("floor", one.floor > 0), ("cap", one.cap < 1)) if is_set
        )
        for name, one in strangers.items()
    }
    return tuple(
        f"the {words} of `{name}`: no such tenant in the log"
        for name, words in set_of.items()
        if words
    )


def _unasked(best: Shared, strangers: Mapping[str, TenantConfig]) -> tuple[str, ...]:
    return tuple(
        f"{one['part']}: {one['tenant']} asks for {one['items']:,} different "
        f"item{'s' * (one['items'] != 1)} only, its floor would hold {one['floor']:,}"
        for one in best.unasked
        if one["tenant"] not in strangers
    )


def _floors(chosen: Shared) -> tuple[str, ...]:
    return tuple(
        f"{one['part']}: {one['tenant']} gets {one['items']:,} of the {one['floor']:,} items that "
        "its floor asks for, the budgets have no room for more"
        for one in chosen.facts.get("floors", ())
    )
