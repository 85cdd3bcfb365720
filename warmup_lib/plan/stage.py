"""The stage that chooses what to warm: demand and vectors -> plan and left_out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib import __version__
from warmup_lib.config import Config
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.errors import InputDataError
from warmup_lib.forecast.spread import Curve, Spread
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Layer
from warmup_lib.layers.registry import LAYERS, enabled
from warmup_lib.plan.budgets import Shared, sharing
from warmup_lib.plan.current import current_plan, next_sequence, plan_meta, standing
from warmup_lib.plan.demand import history_days, read_demand
from warmup_lib.plan.drift import drift
from warmup_lib.plan.feedback import BLOCKED, Feedback, any_never_hit
from warmup_lib.plan.inputs import encoder_of, input_digests, plan_id, same_files
from warmup_lib.plan.measured import measure
from warmup_lib.plan.notes import notes, strangers
from warmup_lib.plan.parts import Chooser, Part, open_parts
from warmup_lib.plan.planned import planned
from warmup_lib.plan.realised import read_feedback
from warmup_lib.plan.reserve import reserves
from warmup_lib.plan.rows import counted, item_rows, left_out_rows
from warmup_lib.plan.sources.proposing import propose
from warmup_lib.plan.value import Value
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN
from warmup_lib.threshold.force import in_force

STRATEGIES = ("full", "incremental")


def run(
    lake: Lake,
    day: str,
    config: Config,
    *,
    strategy: str = "full",
    since: str | None = None,
    layers: Sequence[str] | None = None,
    tenants: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    kind: str = "nightly",
    force: bool = False,
    progress: Progress = silent,
) -> StageReport:
    """Write the plan that follows from the demand known after `day`, or say to wait.

    The current plan is the newest one of an earlier day for the same layers, tenants and models.
    While it would still catch all but `plan.drift_threshold` of what a new plan would, nothing is
    written and its id is returned: applied again, it goes on to serve. The same lake and settings
    give the same plan, byte for byte.

    Memory: the demand (one row a prompt), and the vectors of 262,144 texts or of the largest
    group of one tenant, context and guard signature.

    Args:
        lake: The lake.
        day: Last log day taken in, ISO date.
        config: The settings.
        strategy: `full` plans everything; `incremental` adds to the current plan only so many items
            with which both together catch what a full plan would.
        since: Only what was asked on or after this day, ISO date.
        layers: Only these; None: those that the settings enable.
        tenants: Only these; None: all.
        models: Only these; None: all.
        kind: Goes into the plan's id; letters and digits.
        force: Plan even where the current plan still serves.
        progress: Told how far it is.

    Raises:
        InputDataError: The day is not distilled, embedded or forecast, or an argument is unknown.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    started = time.perf_counter()
    ask = _ask(config, day, strategy, since, layers, tenants, models, kind)
    days = history_days(lake, day, config)
    encoder, dimension = _encoder(lake, config, ask)
    base = current_plan(lake, day, layers=ask.names, scope=ask.scope)
    inputs = input_digests(lake, days, day, encoder, clustered=config.plan.cluster_cap < 1)
    for layer in ask.layers:
        inputs |= layer.inputs(config)
    thresholds = in_force(lake, config, encoder, day)
    inputs |= thresholds.digest()
    feedback = read_feedback(lake, days[0], day, encoder)
    inputs |= feedback.digest()
    measured = measure(lake, days[0], day)
    if sharing(config):
        inputs["measured"] = measured.digest()
    made_from = _made_from(config, ask, encoder, base, inputs)
    progress("demand", 0, None)
    demand = read_demand(
        lake, day, config, encoder, dimension, since=since, tenants=tenants, models=models
    )
    demand, proposals = propose(lake, demand, config, days[0], tenants=tenants, models=models)
    # Neighbours are searched by one thread a core: more BLAS threads would wait on each other.
    with threadpool_limits(1, user_api="blas"):
        known = feedback.without(_standing(lake, base, day, encoder, renewed=True))
        vectors = LakeVectors(lake, demand.encoder)
        reserved = reserves(lake, days, config, progress)
        parts = open_parts(
            ask.layers,
            demand,
            proposals,
            config,
            vectors,
            known,
            thresholds,
            feedback,
            progress,
            reserved,
        )
        chooser = Chooser(config, Value(config, measured), _clusters(lake, config, day))
        best = chooser.best(parts)
        facts = _drift_facts(config, base, parts, best)
        refused = pa.concat_tables(part.refused for part in parts)
        if (
            not force
            and _still_serves(lake, config, base, facts, made_from["inputs"])
            and not any_never_hit(known, refused)
        ):
            made = _wait(lake, base, parts, facts, feedback)
        else:
            if made_from["base"] is not None:
                warm = _standing(lake, made_from["base"], day, encoder, renewed=False)
                warm = feedback.without(warm)
                chosen = chooser.beyond(parts, best, warm)
            else:
                warm, chosen = PLAN.empty(), best
            made = _write(lake, made_from, parts, chosen, warm, chooser.value, facts, feedback)
            scoped = since is not None or any(only is not None for only in ask.scope.values())
            unknown = strangers(config, demand)
            told = notes(parts, best, chosen, reserved, unknown, scoped=scoped)
            made = replace(made, notes=told)
    rows_in = demand.prompts.num_rows + demand.heads.num_rows
    told = (*feedback.notes(), *made.notes)
    return replace(made, rows_in=rows_in, seconds=time.perf_counter() - started, notes=told)


@dataclass(frozen=True)
class _Ask:
    """What was asked for, checked."""

    day: str
    kind: str
    strategy: str
    since: str | None
    layers: list[Layer]
    scope: dict[str, list[str] | None]

    @property
    def names(self) -> list[str]:
        return [layer.name for layer in self.layers]


def _ask(
    config: Config,
    day: str,
    strategy: str,
    since: str | None,
    layers: Sequence[str] | None,
    tenants: Sequence[str] | None,
    models: Sequence[str] | None,
    kind: str,
) -> _Ask:
    if strategy not in STRATEGIES:
        raise InputDataError(f"'{strategy}' is no strategy: {' or '.join(STRATEGIES)}")
    if not kind.isalnum():
        raise InputDataError(f"'{kind}' is no kind of plan: use letters and digits only")
    if unknown := sorted(set(layers or ()) - set(LAYERS)):
        raise InputDataError(f"no such layer: {', '.join(unknown)}; there are {', '.join(LAYERS)}")
    if since is not None:
        try:
            late = date.fromisoformat(since).isoformat() > day
        except ValueError:
            raise InputDataError(f"'{since}' is not a day: write it as 2026-03-14") from None
        if late:
            raise InputDataError(f"nothing up to {day} was asked since {since}, which is later")
    chosen = enabled(config) if layers is None else [LAYERS[n] for n in LAYERS if n in layers]
    if not chosen:
        raise InputDataError("no layer is enabled: there is nothing to plan for")
    scope = {
        "tenants": sorted(tenants) if tenants is not None else None,
        "models": sorted(models) if models is not None else None,
    }
    return _Ask(day, kind, strategy, since, chosen, scope)


def _encoder(lake: Lake, config: Config, ask: _Ask) -> tuple[str, int]:
    """Return fingerprint and dimension of the encoder; layers on a host need none."""
    found = encoder_of(lake, ask.day, config)
    if found is None and any(layer.target_kind == "redis" for layer in ask.layers):
        raise InputDataError(
            f"no vectors of encoder '{config.encoder.name}' up to {ask.day}: run `embed` first"
        )
    return found or ("", 0)


def _made_from(
    config: Config, ask: _Ask, encoder: str, base: str | None, inputs: dict[str, str]
) -> dict[str, Any]:
    """Return all that a plan depends on, which is what its id is made of."""
    return {
        "day": ask.day,
        "kind": ask.kind,
        "strategy": ask.strategy,
        "since": ask.since,
        "layers": ask.names,
        "scope": ask.scope,
        "base": base if ask.strategy == "incremental" else None,
        "config": config.digest(),
        "version": __version__,
        "encoder": encoder,
        "inputs": inputs,
    }


def _standing(lake: Lake, plan: str | None, day: str, encoder: str, *, renewed: bool) -> pa.Table:
    """Return the warm items of a plan, without those whose vectors are another encoder's."""
    items = standing(lake, plan, day, renewed=renewed)
    return items.filter(pc.equal(pc.fill_null(items["encoder"], encoder), encoder))


def _clusters(lake: Lake, config: Config, day: str) -> pa.Table | None:
    """Return which cluster each text of a day is in; None: no cluster has a cap."""
    if config.plan.cluster_cap == 1:
        return None
    if lake.manifest("members", {"day": day}) is None:
        raise InputDataError(f"no clusters for {day}: run `cluster` for it first")
    return lake.read("members", {"day": day}, ["tenant", "text_digest", "cluster_id"])


def _drift_facts(
    config: Config, base: str | None, parts: list[Part], best: Shared
) -> dict[str, Any]:
    main = [(p, choice) for p, choice in zip(parts, best.choices, strict=True) if p.tier is None]
    moved = drift({p.name: p.caught for p, _ in main}, {p.name: c.total for p, c in main})
    by_layer = {layer: round(share, 6) for layer, share in moved.items()}
    return {
        "current": base,
        "drift": None if base is None else max(by_layer.values()),
        "drift_by_layer": {} if base is None else by_layer,
        "drift_threshold": config.plan.drift_threshold,
    }


def _still_serves(
    lake: Lake, config: Config, base: str | None, facts: dict[str, Any], inputs: dict[str, str]
) -> bool:
    """Say whether the current plan may go on: same settings, files, blocks; demand hardly moved."""
    if base is None:
        return False
    meta = plan_meta(lake, base)
    return (
        meta["config"] == config.digest()
        and same_files(meta["inputs"], inputs)
        and meta["inputs"].get(BLOCKED) == inputs.get(BLOCKED)
        and facts["drift"] < config.plan.drift_threshold
    )


def _wait(
    lake: Lake, base: str | None, parts: list[Part], facts: dict[str, Any], feedback: Feedback
) -> StageReport:
    names = list(dict.fromkeys(part.name for part in parts))
    items = lake.read("plan", {"plan_id": base or ""})
    items = items.filter(pc.is_in(items["layer"], value_set=pa.array(names)))
    told = {
        "plan_id": base,
        "decision": "wait",
        **counted(items, LEFT_OUT.empty(), names),
        **facts,
        "feedback": feedback.facts(LEFT_OUT.empty(), items),
        "expected_hits": {p.name: round(p.caught / MICRO, 3) for p in parts if p.tier is None},
    }
    note = (
        f"wait: {base} still catches {1 - facts['drift']:.1%} of what a new plan would (a new one "
        f"is made below {1 - facts['drift_threshold']:.1%}); apply it again to renew its lifetimes"
    )
    return StageReport("plan", 0, 0, 0.0, (note,), told)


def _write(
    lake: Lake,
    made_from: dict[str, Any],
    parts: list[Part],
    chosen: Shared,
    warm: pa.Table,
    value: Value,
    drift_facts: dict[str, Any],
    feedback: Feedback,
) -> StageReport:
    rows, left_out = [], []
    ranked: Counter[str] = Counter()
    fitted = _fitted(lake, made_from["day"])
    for part, choice, beyond in zip(parts, chosen.choices, chosen.beyond, strict=True):
        curve, spread = fitted.get(part.level, (Curve(), Spread()))
        found = part.offer.looked_up(choice, part.of(warm))
        worth = np.rint(curve.mean(found.expected / MICRO) * MICRO).astype(np.int64)
        found = replace(found, expected=worth)
        made = item_rows(part.offer, found, spread, after=ranked[part.name])
        rows.append(feedback.told(made))
        ranked[part.name] += len(choice.rows)
        blamed = feedback.blamed(part.offer.candidates["item_id"])
        left_out += [left_out_rows(part.offer, choice, warm, beyond, blamed), part.refused]
    ident = plan_id(made_from)
    items, others = pa.concat_tables(rows), pa.concat_tables(left_out)
    facts = {
        "plan_id": ident,
        "decision": "planned",
        "base": made_from["base"],
        **counted(items, others, made_from["layers"]),
        **drift_facts,
        "feedback": feedback.facts(others, items),
        **chosen.facts,
        "budgets": _limits(parts, chosen) | chosen.facts["budgets"],
        "planned": planned(items, list(dict.fromkeys(part.layer for part in parts)), value),
        "figures": value.sources(),
    }
    sequence = next_sequence(lake, ident, made_from["day"])
    meta = {**made_from, "sequence": sequence, "facts": facts}
    # The plan itself comes last: where it is there, what belongs to it is too.
    lake.replace("left_out", {"plan_id": ident}, others, meta)
    lake.replace("plan", {"plan_id": ident}, items, meta)
    return StageReport("plan", 0, items.num_rows, 0.0, (), facts)


def _fitted(lake: Lake, day: str) -> dict[str, tuple[Curve, Spread]]:
    """Return by level of heat what it is worth in requests, and how these scatter."""
    manifest = lake.manifest("heat", {"day": day})
    found = manifest.meta.get("fitted", {}) if manifest is not None else {}
    return {level: (Curve(**one["curve"]), Spread(**one["spread"])) for level, one in found.items()}


def _limits(parts: list[Part], chosen: Shared) -> dict[str, dict[str, int]]:
    """Return how many items each layer and tier may have, and has."""
    return {
        f"items/{part.name}" if part.tier is None else f"items/{part.name}/{part.tier}": {
            "limit": part.offer.limit,
            "used": len(choice.rows),
        }
        for part, choice in zip(parts, chosen.choices, strict=True)
    }
