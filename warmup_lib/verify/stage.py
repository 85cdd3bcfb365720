"""Stage `verify`: proves what is resident and measures the hit ratio on later traffic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.apply.receipts import latest
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.observe.instruments import current
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import HITS
from warmup_lib.verify import audit, calibration, measures
from warmup_lib.verify.evictions import evicted_entries
from warmup_lib.verify.measuring import Measured, Measuring, Subject
from warmup_lib.verify.residency import Residency, completion, prove_all
from warmup_lib.verify.vectors import Encode, open_encode
from warmup_lib.verify.window import Window, open_window, plan_day


async def run(
    lake: Lake,
    plan_id: str,
    config: Config,
    keys: Keys,
    *,
    day: str | None = None,
    requests: Path | None = None,
    progress: Progress = silent,
) -> StageReport:
    """Verify a plan; replaces its `residency` and, with later traffic, its `hits` of that window.

    Args:
        lake: The lake.
        plan_id: The plan.
        config: The settings.
        keys: The key builder.
        day: Later traffic as a day of the lake.
        requests: Later traffic as a log file, which is not stored.
        progress: Told how far each part is.

    Raises:
        InputDataError: There is no such plan, day or usable request.
        ConfigError: A target has no address.
    """
    from warmup_lib.layers.registry import LAYERS
    from warmup_lib.targets.open import close_all, open_targets

    items = read_items(lake, plan_id)
    last_day = plan_day(lake, plan_id)
    window = open_window(lake, plan_id, config, keys, day, requests)
    targets = open_targets(config)
    try:
        context = open_context(lake, plan_id, config, keys, items, targets)
        layers = tuple(LAYERS.values())
        subject = Subject(lake, items, last_day, layers, targets, context)
        encode = open_encode(config, context.vectors.encoder)
        with current().work("warmup.verify", plan_id, {}):
            return await verify(subject, window, encode, progress)
    finally:
        await close_all(targets)


async def verify(
    subject: Subject, window: Window | None, encode: Encode, progress: Progress = silent
) -> StageReport:
    """Verify a plan on opened targets; see `run`.

    Args:
        subject: What is verified, and where.
        window: Later traffic; None: only residency is proven.
        encode: Gives later texts their vectors, under the plan's encoder.
        progress: Told how far each part is.
    """
    begun = time.perf_counter()
    lake, context = subject.lake, subject.context
    receipts = latest(lake.read("receipts", {"plan_id": context.plan_id}))
    residency = Residency(lake, receipts, context, progress)
    proven, down = await prove_all(residency, subject.items, subject.layers, subject.targets)
    held = residency.publish(proven)
    audits = await audit.audit_all(subject, down)
    complete = completion(proven, subject.items, subject.layers, subject.targets)
    facts: dict[str, Any] = {"plan_id": context.plan_id, "completion": complete, "audit": audits}
    measured = None
    if window is not None:
        measured = await Measuring(subject, window, encode, proven, down, progress).run()
        table = pa.Table.from_pylist(measured.rows, schema=HITS.schema)
        partition = {"plan_id": context.plan_id, "window": window.name}
        lake.replace("hits", partition, table, window.meta)
        facts |= _window_facts(window, measured)
        if window.whole_day:
            facts["calibration"] = _calibration(subject, measured.rows)
    ratios = facts.get("hit_ratio", {})
    control = measured.control if measured is not None and measured.asked else None
    facts["gates"] = measures.gates(complete, ratios, control, context.config.gates)
    facts["evicted"] = evicted_entries(proven)
    facts["unavailable"] = [{"target": t, "reason": r} for t, r in sorted(down.items())]
    facts["skipped_layers"] = [la.name for la in subject.planned if not subject.homes(la)]
    return StageReport(
        stage="verify",
        rows_in=len(subject.items) + (window.rows.num_rows if window else 0),
        rows_out=held + (len(measured.rows) if measured else 0),
        seconds=time.perf_counter() - begun,
        notes=_notes(facts, window, measured, subject.plan_day, proven),
        facts=facts,
    )


def _window_facts(window: Window, measured: Measured) -> dict[str, Any]:
    main = measures.main_rows(measured.rows)
    ratios = measures.hit_ratios(main)
    baselines = {
        layer: {**shares, "live": ratios[layer]["overall"] if layer in ratios else None}
        for layer, shares in measured.baselines.items()
    }
    return {
        "window": window.name,
        "in_sample": window.in_sample,
        "requests": window.rows.num_rows,
        "bypassed": window.bypassed,
        "bypass_share": window.bypass_share,
        "own_traffic": window.own,
        "hit_ratio": ratios,
        "by_match": measures.by_match(main),
        "tiers": measures.tiers(measured.rows),
        "other_plans_hits": measured.others,
        "baselines": baselines,
        "first_token": measures.first_token(measured.rows),
        "control_asked": measured.asked,
        "control_hits": measured.control,
        "control": measured.controls,
        "host_unserved": measured.unserved,
        "host_planned_misses": measured.lost,
        "host_uncrowded": measured.uncrowded,
    }


def _calibration(subject: Subject, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the calibration of the layers whose every request is looked up."""
    found = {}
    for layer in subject.looked_up:
        if layer.by_request and layer.target_kind == "redis":
            ours = [r for r in measures.main_rows(rows) if r["layer"] == layer.name]
            found[layer.name] = calibration.facts(calibration.scored(subject.of(layer), ours))
    return found


def _notes(
    facts: dict[str, Any],
    window: Window | None,
    measured: Measured | None,
    plan_day: str,
    proven: Sequence[dict[str, Any]],
) -> tuple[str, ...]:
    notes = [
        f"target '{one['target']}' did not answer: {one['reason']}" for one in facts["unavailable"]
    ]
    notes += [
        f"target '{target}' evicted {sum(layers.values()):,} entries of this plan before their "
        "time: raise maxmemory, or plan fewer items (layers.*.items)"
        for target, layers in facts["evicted"].items()
    ]
    notes += [
        f"layer {name} was left out: no target can take it" for name in facts["skipped_layers"]
    ]
    notes += measures.incomplete(facts["completion"], proven, facts["gates"])
    notes += audit.notes(facts["audit"])
    if window is None:
        notes.append("no later traffic was given: only residency is proven")
        return tuple(notes)
    if window.in_sample:
        notes.append(
            f"the traffic of {window.name} is not later than the plan's last day {plan_day}: the "
            "plan knew it, so this hit ratio says nothing about the future"
        )
    if not window.rows.num_rows:
        notes.append(f"no request of {window.name} asked the caches: there is no hit ratio")
    if measured is not None and measured.uncrowded:
        notes.append(
            f"{measured.uncrowded} of the sampled requests (verify.cold_sample) were not sent cold "
            "too: they would have pushed planned heads out of a host's KV cache while it is "
            "measured"
        )
    if measured is not None and measured.control:
        notes.append(
            f"{measured.control} of {measured.asked} control requests hit where nothing was ever "
            "warmed: this measurement is wrong, look at what the cache keys hold"
        )
    return tuple(notes)
