"""Stage `explain`: gives each miss of a window one cause, with what shows it and what to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError, TargetUnavailable
from warmup_lib.explain import rows
from warmup_lib.explain.closeness import Closeness
from warmup_lib.explain.history import History
from warmup_lib.explain.hosts import Hosts
from warmup_lib.explain.known import read_known
from warmup_lib.explain.leftout import LeftOut
from warmup_lib.explain.mismatch import Mismatch
from warmup_lib.explain.miss import Miss
from warmup_lib.explain.misses import (
    LOOKED_UP,
    Passed,
    Replayed,
    Unread,
    collect,
    gateways,
    silent_requests,
)
from warmup_lib.explain.nearest import Nearest
from warmup_lib.explain.otherwise import Otherwise
from warmup_lib.explain.settle import Settler, passed, unread
from warmup_lib.explain.standing import Live, Standing, ask, stand
from warmup_lib.explain.survivors import survivors
from warmup_lib.explain.unplanned import Unplanned
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.registry import LAYERS
from warmup_lib.plan.current import standing as standing_items
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.targets.base import Target
from warmup_lib.targets.host import ModelHost
from warmup_lib.verify.measuring import Subject
from warmup_lib.verify.vectors import Encode, open_encode
from warmup_lib.verify.window import Window, open_window, plan_day, slices

_AT_ONCE = 32_768


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
    """Explain the misses of a window; replaces its partition of `causes`.

    Where a gateway wrote what it saw (`cache_evidence`), a miss is what happened then. Elsewhere it
    is what the replay of `verify` found, which has to be run on the same window before.

    Args:
        lake: The lake.
        plan_id: The plan.
        config: The settings.
        keys: The key builder.
        day: The traffic as a day of the lake.
        requests: The traffic as a log file, which is not stored.
        progress: Told how far it is.

    Raises:
        InputDataError: There is no such plan, day or usable request, or the window was not
            replayed though some of its requests carry no evidence.
        ConfigError: A target has no address.
    """
    from warmup_lib.targets.open import close_all, open_targets

    read_items(lake, plan_id)
    window = open_window(lake, plan_id, config, keys, day, requests)
    if window is None:
        raise InputDataError("explain needs traffic: give a day or a requests file")
    last = plan_day(lake, plan_id)
    items = PlanItem.rows(standing_items(lake, plan_id, last, renewed=True))
    targets = open_targets(config)
    try:
        context = open_context(lake, plan_id, config, keys, items, targets)
        subject = Subject(lake, items, last, tuple(LAYERS.values()), targets, context)
        encode = open_encode(config, context.vectors.encoder)
        return await explain(subject, window, encode, progress)
    finally:
        await close_all(targets)


async def explain(
    subject: Subject, window: Window, encode: Encode, progress: Progress = silent
) -> StageReport:
    """Explain a window on opened targets; see `run`.

    Args:
        subject: What is explained, and where.
        window: The traffic.
        encode: Gives later texts their vectors, under the plan's encoder.
        progress: Told how far it is.
    """
    begun = time.perf_counter()
    lake, plan_id = subject.lake, subject.context.plan_id
    replayed = Replayed(lake, plan_id, window.name)
    sources = gateways(window.rows)
    if unseen := replayed.lacks(silent_requests(window.rows, sources)):
        raise InputDataError(
            f"{unseen:,} requests of {window.name} carry no evidence of their gateway and were not "
            f"replayed: `warmup verify` plan {plan_id} on them first"
        )
    live, down = await _live(lake, subject.targets, plan_id)
    kinds = {target.name: target.kind for target in subject.targets}
    standing = stand(lake, plan_id, subject.items, live, kinds, datetime.now(UTC))
    if any(one.emptied for one in live.values()):
        standing.survived = survivors(window.rows, standing)
    history = History(lake, subject.plan_day)
    try:
        explaining = _Explaining(subject, standing, history, encode)
        parts = [rows.as_table(explaining.around(window))]
        done = 0
        for piece in slices(window.rows, _AT_ONCE):
            found = list(collect(piece, replayed, sources, standing))
            parts.append(rows.as_table(explaining.settled(found)))
            done += piece.num_rows
            progress("explain", done, window.rows.num_rows)
    finally:
        history.close()
    table = pa.concat_tables(parts)
    partition = {"plan_id": plan_id, "window": window.name}
    lake.replace("causes", partition, table, window.meta)
    facts = {
        "plan_id": plan_id,
        "window": window.name,
        "requests": window.rows.num_rows + window.bypassed,
        **rows.facts(table),
        "unavailable": [{"target": t, "reason": r} for t, r in sorted(down.items())],
    }
    return StageReport(
        stage="explain",
        rows_in=window.rows.num_rows + window.bypassed,
        rows_out=table.num_rows,
        seconds=time.perf_counter() - begun,
        notes=_notes(facts),
        facts=facts,
    )


class _Explaining:
    """What is needed to explain the pieces of one window."""

    def __init__(
        self, subject: Subject, standing: Standing, history: History, encode: Encode
    ) -> None:
        lake, context = subject.lake, subject.context
        keys, known = context.keys, read_known(lake, subject.plan_day)
        salted = {t.name for t in subject.targets if _salted(t)}
        nearest = Nearest(standing, context.vectors, encode)
        self._places = context.places
        self._layers = [n for n in LOOKED_UP if any(i.layer == n for i in subject.items)]
        self._settler = Settler(
            standing,
            keys,
            Hosts(self._places, known, salted),
            Mismatch(self._places, known),
            Unplanned(
                standing,
                LeftOut(lake, context.plan_id),
                history,
                Closeness(standing, nearest, context.threshold),
                Otherwise(standing, keys),
                keys,
            ),
        )

    def around(self, window: Window) -> list[rows.Row]:
        """Return the rows of what was told to go round the caches."""
        return [
            row
            for asked, verdict in rows.bypassed(window.around)
            for row in rows.not_looked(asked, verdict, self._layers)
        ]

    def settled(self, found: Sequence[Miss | Passed | Unread]) -> list[rows.Row]:
        """Return the rows of misses, and of requests of which no look is known."""
        misses = [one for one in found if isinstance(one, Miss)]
        verdicts = self._settler.settle(misses)
        made = [rows.missed(m, v, self._places) for m, v in zip(misses, verdicts, strict=True)]
        for one in found:
            if not isinstance(one, Miss):
                verdict = passed(one) if isinstance(one, Passed) else unread(one)
                made += rows.not_looked(one.asked, verdict, self._layers)
        return made


def _salted(target: Target) -> bool:
    return isinstance(target, ModelHost) and target.cache_salt == "derived"


async def _live(
    lake: Lake, targets: Sequence[Target], plan_id: str
) -> tuple[dict[str, Live], dict[str, str]]:
    live: dict[str, Live] = {}
    down: dict[str, str] = {}
    for target in targets:
        try:
            live |= await ask([target], lake, plan_id)
        except TargetUnavailable as error:
            down[error.target] = error.reason
    return live, down


def _notes(facts: dict[str, Any]) -> tuple[str, ...]:
    notes = [
        f"target '{one['target']}' did not answer, so that what it lost is told by receipts and "
        f"earlier looks alone: {one['reason']}"
        for one in facts["unavailable"]
    ]
    if not facts["misses"]:
        notes.append(f"no request of {facts['window']} missed: there is nothing to explain")
    return tuple(notes)
