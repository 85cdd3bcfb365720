"""Stage `apply`: warms a plan's items on the targets and leaves a receipt for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from warmup_lib.apply import report
from warmup_lib.apply.index import index_files, index_notes
from warmup_lib.apply.interference import Guard
from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.apply.readiness import Readiness
from warmup_lib.apply.receipts import Journal
from warmup_lib.apply.room import check_room
from warmup_lib.apply.thresholds import publish
from warmup_lib.apply.worker import Done, Run, Share, Worker
from warmup_lib.config import Config
from warmup_lib.errors import ConfigError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, PlanItem
from warmup_lib.layers.spent import record
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.targets.base import Target
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import EVICTED_KEYS


async def run(
    lake: Lake,
    plan_id: str,
    config: Config,
    keys: Keys,
    *,
    layers: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    resume: bool = False,
    progress: Progress = silent,
) -> StageReport:
    """Warm a plan; replaces its `receipts`.

    Without `resume` everything is warmed again, which also renews its lifetime; but a host keeps
    what the plans that this one builds on warmed on its running process. A target that is
    not up yet is waited for; one that goes down is given up (fact `unavailable`), and the others
    go on. What is not warm at the end of the warm-up window is missing (`window_over`).

    Args:
        lake: The lake.
        plan_id: The plan.
        config: The settings.
        keys: The key builder.
        layers: Only these layers.
        targets: Only these targets.
        resume: Warm only what is not warm yet on the running process of each target.
        progress: Told how many items of each target are done.

    Raises:
        InputDataError: There is no such plan, or it does not hold a named layer.
        ConfigError: A target is unknown or has no address.
        Superseded: A newer plan began on a target meanwhile; receipts tell what was done.
    """
    from warmup_lib.layers.registry import LAYERS
    from warmup_lib.targets.open import close_all, open_targets

    items = read_items(lake, plan_id, layers)
    opened = open_targets(config)
    try:
        names = [target.name for target in opened]
        if unknown := sorted(set(targets or ()) - set(names)):
            raise ConfigError(f"no such target: {', '.join(unknown)}; there are {', '.join(names)}")
        chosen = [t for t in opened if targets is None or t.name in targets]
        context = open_context(lake, plan_id, config, keys, items, opened)
        return await warm(
            lake, items, list(LAYERS.values()), chosen, context, resume=resume, progress=progress
        )
    finally:
        await close_all(opened)


async def warm(
    lake: Lake,
    items: Sequence[PlanItem],
    layers: Sequence[Layer],
    targets: Sequence[Target],
    context: Context,
    *,
    resume: bool,
    progress: Progress = silent,
) -> StageReport:
    """Warm items on opened targets; see `run`.

    Args:
        lake: The lake.
        items: Items of one plan.
        layers: All layers, in the order in which a target gets them.
        targets: The targets, which are warmed at the same time.
        context: What the layers need.
        resume: Leave alone what receipts and looking show to be warm.
        progress: Told how many items of each target are done.
    """
    begun = time.perf_counter()
    since = datetime.now(UTC)
    settings = context.config.apply
    window_s = settings.window.total_seconds()
    readiness = Readiness(targets, min(settings.ready_timeout.total_seconds(), window_s))
    journal = Journal(lake, context.plan_id)
    receipts = journal.read() if resume else None
    shares = {target.name: _shares(items, layers, target) for target in targets}
    room = await check_room(targets, shares, context)
    ends = time.monotonic() + window_s
    hosts = [t.name for t in targets if t.kind == "host" and shares[t.name]]
    loaded = {name: asyncio.Event() for name in hosts}
    guards = _guards(targets, context, ends)
    inherited = journal.inherited()
    shared = Run(lake, context, journal, readiness, ends, progress, loaded, guards, inherited)
    workers = [Worker(shared, t, shares[t.name]) for t in targets if shares[t.name]]
    async with AsyncExitStack() as held:
        for guard in guards.values():
            await held.enter_async_context(guard)
        ended = await asyncio.gather(*[w.run(receipts) for w in workers], return_exceptions=True)
    manifest = await journal.compact()
    # A resume adds to what the apply took that it goes on with.
    took = time.perf_counter() - begun + (manifest.meta.get("seconds", 0.0) if resume else 0.0)
    facts_kept = {"seconds": round(took, 3), EVICTED_KEYS: dict(room.evicted)}
    lake.annotate("receipts", {"plan_id": context.plan_id}, facts_kept)
    done = _checked(ended)
    costs = report.costs(done, [layer.name for layer in layers])
    record(lake, context.plan_id, costs)
    homeless = sorted({i.layer for i in items} - {la.name for s in shares.values() for la, _ in s})
    down = {d.target for d in done if d.unavailable}
    all_costs = [cost for d in done for cost in d.costs.values()]
    table = report.completion(shares, journal.read(), since, down)
    files = await index_files(lake, items, targets, context)
    thresholds = await publish(items, targets, context)
    facts = {
        "plan_id": context.plan_id,
        "completion": table,
        "receipts": journal.path,
        "seconds": round(time.perf_counter() - begun, 3),
        "bytes": sum(cost.written for cost in all_costs),
        "warmed": sum(cost.items for cost in all_costs),
        "kept": sum(d.kept for d in done),
        "layers": costs,
        "readiness": readiness.facts(),
        "abilities": report.abilities(done),
        "interference": {name: guard.facts() for name, guard in guards.items()},
        "unavailable": report.unavailable(done),
        "not_ready": report.not_ready(done, table),
        "window_over": [d.target for d in done if d.window_over],
        "skipped_layers": homeless,
        "index_files": files,
        "thresholds": thresholds,
    }
    return StageReport(
        stage="apply",
        rows_in=sum(len(part) for share in shares.values() for _, part in share),
        rows_out=manifest.rows,
        seconds=time.perf_counter() - begun,
        notes=(
            *room.notes,
            *readiness.notes(),
            *report.notes(done, homeless),
            *await report.without_search(targets, shares),
            *index_notes(files),
        ),
        facts=facts,
    )


def _checked(ended: Sequence[Done | BaseException]) -> list[Done]:
    """Return what the workers did, or raise what stopped one of them for good."""
    for end in ended:
        if isinstance(end, BaseException):
            raise end
    done = [end for end in ended if isinstance(end, Done)]
    for one in done:
        if one.superseded is not None:
            raise one.superseded
    return done


def _guards(targets: Sequence[Target], context: Context, ends: float) -> dict[str, Guard]:
    """Return a guard for each model host, those included that only generate answers."""
    if not context.config.apply.interference.enabled:
        return {}
    hosts = [target for target in (*targets, *context.hosts) if isinstance(target, ModelHost)]
    return {host.name: Guard(host, context.config.apply, ends) for host in hosts}


def _shares(items: Sequence[PlanItem], layers: Sequence[Layer], target: Target) -> list[Share]:
    """Return the layers that this target can take, in order, each with its items by rank."""
    shares: list[Share] = []
    for layer in layers:
        ours = [item for item in items if item.layer == layer.name]
        if ours and layer.target_kind == target.kind:
            shares.append((layer, sorted(ours, key=lambda item: item.rank)))
    return shares
