"""Stage `apply`: warms a plan's items on the targets and leaves a receipt for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.apply.receipts import Journal
from warmup_lib.apply.worker import Done, Share, Worker
from warmup_lib.config import Config
from warmup_lib.errors import ConfigError, TargetUnavailable
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, PlanItem
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import RedisStore

if TYPE_CHECKING:
    import pyarrow as pa


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

    Without `resume` everything is warmed again, which also renews its lifetime. A target that
    goes down is given up (fact `unavailable`) and the others go on.

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
    journal = Journal(lake, context.plan_id)
    receipts = journal.read() if resume else None
    shares = {target.name: _shares(items, layers, target) for target in targets}
    workers = [
        Worker(lake, target, shares[target.name], context, journal, progress)
        for target in targets
        if shares[target.name]
    ]
    ended = await asyncio.gather(*[w.run(receipts) for w in workers], return_exceptions=True)
    manifest = await journal.compact()
    for end in ended:
        if isinstance(end, BaseException):
            raise end
    done = [end for end in ended if isinstance(end, Done)]
    for one in done:
        if one.superseded is not None:
            raise one.superseded
    homeless = sorted({i.layer for i in items} - {la.name for s in shares.values() for la, _ in s})
    down = {d.target: d.unavailable for d in done if d.unavailable}
    down |= {target: reason for d in done for target, reason in d.lacked.items()}
    facts = {
        "plan_id": context.plan_id,
        "completion": completion(
            shares, journal.read(), since, {d.target for d in done if d.unavailable}
        ),
        "receipts": journal.path,
        "seconds": round(time.perf_counter() - begun, 3),
        "bytes": sum(d.bytes for d in done),
        "warmed": sum(d.warmed for d in done),
        "kept": sum(d.kept for d in done),
        "unavailable": [{"target": t, "reason": r} for t, r in sorted(down.items())],
        "skipped_layers": homeless,
    }
    return StageReport(
        stage="apply",
        rows_in=sum(len(part) for share in shares.values() for _, part in share),
        rows_out=manifest.rows,
        seconds=time.perf_counter() - begun,
        notes=(*_notes(done, homeless), *await _without_search(targets, shares)),
        facts=facts,
    )


def completion(
    shares: dict[str, list[Share]], receipts: pa.Table, since: datetime, down: set[str]
) -> dict[str, Any]:
    """Return planned and done items by layer and target.

    Args:
        shares: Each target's layers and items.
        receipts: The last receipt of each item and target.
        since: When this run began. What an older receipt tells, it looked at: `already`.
        down: Targets that did not answer; of their older receipts it knows nothing: `missing`.
    """
    status: dict[tuple[str, str], str] = {}
    for row in receipts.select(["item_id", "target", "status", "at"]).to_pylist():
        told = row["status"]
        if row["at"] < since:
            found = row["target"] not in down and told in ("warmed", "already")
            told = "already" if found else "missing"
        status[row["item_id"], row["target"]] = told
    table: dict[str, Any] = {}
    for target, parts in shares.items():
        for layer, items in parts:
            states = [status.get((item.item_id, target), "missing") for item in items]
            counts = {"planned": len(items), "done": states.count("warmed")}
            counts |= {s: states.count(s) for s in ("already", "failed", "skipped", "missing")}
            warm = counts["done"] + counts["already"]
            table.setdefault(layer.name, {})[target] = {
                **counts,
                "completion": warm / len(items),
            }
    return table


def _shares(items: Sequence[PlanItem], layers: Sequence[Layer], target: Target) -> list[Share]:
    """Return the layers that this target can take, in order, each with its items by rank."""
    shares: list[Share] = []
    for layer in layers:
        ours = [item for item in items if item.layer == layer.name]
        if ours and layer.target_kind == target.kind:
            shares.append((layer, sorted(ours, key=lambda item: item.rank)))
    return shares


async def _without_search(
    targets: Sequence[Target], shares: dict[str, list[Share]]
) -> tuple[str, ...]:
    """Say where a layer that serves similar questions can serve equal ones only."""
    notes = []
    for target in targets:
        semantic = [layer.name for layer, _ in shares[target.name] if layer.match == "semantic"]
        if not (semantic and isinstance(target, RedisStore)):
            continue
        try:
            if not await target.has_search():
                notes.append(
                    f"target '{target.name}' has no search module: {', '.join(semantic)} serve "
                    "equal questions there and no similar ones, so fewer hits than planned"
                )
        except TargetUnavailable:
            continue  # it is among those given up
    return tuple(notes)


def _notes(done: Sequence[Done], homeless: Sequence[str]) -> tuple[str, ...]:
    notes = [
        f"target '{d.target}' was given up: {d.unavailable}; its receipts are kept, "
        "`warmup apply --resume` goes on from there"
        for d in done
        if d.unavailable
    ]
    notes += [
        f"some items of target '{d.target}' need target '{target}', which does not answer: "
        f"{reason}; `warmup apply --resume` tries them again"
        for d in done
        for target, reason in d.lacked.items()
    ]
    notes += [f"layer {layer} was left out: no target can take it" for layer in homeless]
    return tuple(notes)
