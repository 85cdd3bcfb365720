"""One target's share of an apply: layer after layer, batches in flight, retries, receipts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import tenacity

from warmup_lib.apply.costs import Cost, measured
from warmup_lib.apply.generation import Generation
from warmup_lib.apply.interference import Guard, WindowOver
from warmup_lib.apply.lock import LakeLock, Locked
from warmup_lib.apply.order import Order
from warmup_lib.apply.readiness import Readiness
from warmup_lib.apply.receipts import Journal, Receipt, receipt
from warmup_lib.apply.resume import remaining, vouched
from warmup_lib.config import ApplyConfig
from warmup_lib.errors import Superseded, TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, Outcome, PlanItem
from warmup_lib.layers.heads import NOT_SERVED
from warmup_lib.observe.instruments import CACHE_BACKEND, CACHE_LAYER, WARMUP_LAYER, current
from warmup_lib.stage import Progress
from warmup_lib.tables import STR
from warmup_lib.targets.base import Target
from warmup_lib.targets.capabilities import Capabilities
from warmup_lib.targets.host import ModelHost

T = TypeVar("T")

LOADING = ("weights", "adapters")
"""Layers after which a host can answer for whatever it will serve."""

Share = tuple[Layer, Sequence[PlanItem]]
"""One layer and its items, as one target gets them."""

_WAIT = tenacity.wait_random_exponential(multiplier=0.5, max=30)
"""Full jitter: many workers that lost one target don't return to it at the same moment."""


@dataclass
class Done:
    """What one target's worker did.

    Attributes:
        target: The target's name.
        costs: What each layer that began took.
        kept: Items that a resume found warm and left alone.
        unavailable: Why the target was given up; None: it was not.
        superseded: The newer plan's claim that stopped this run; None: nothing did.
        lacked: Other targets that some items needed and that did not answer, with the reason.
        not_ready: Layers that others need and that are not resident as planned, with the reason.
        skipped: Items that the target can't have, by layer and reason.
        unserved: Of other items: those whose model or adapter the host does not serve, by layer
            and its name in the log.
        serves: The names that such a host serves, as far as it was asked.
        failed: Items that were tried in vain, by layer and reason.
        window_over: The warm-up window ended before everything was tried.
        can: What a model host can do, as far as it was asked.
        notes: Sentences that layers have for the user.
    """

    target: str
    costs: dict[str, Cost] = field(default_factory=dict)
    kept: int = 0
    unavailable: str | None = None
    superseded: Superseded | None = None
    lacked: dict[str, str] = field(default_factory=dict)
    not_ready: dict[str, str] = field(default_factory=dict)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    unserved: Counter[tuple[str, str]] = field(default_factory=Counter)
    serves: Sequence[str] = ()
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    window_over: bool = False
    can: Capabilities | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """What the workers of one apply share.

    Attributes:
        lake: The lake, for the locks.
        context: What the layers need.
        journal: Where receipts go.
        readiness: Whom to ask whether a target is up.
        ends: End of the warm-up window, by `time.monotonic`.
        progress: Told after each batch.
        loaded: Set once a model host has the models and adapters that it will get.
        guards: What holds warming back, by model host.
        inherited: The last receipts of the plans that this one builds on.
    """

    lake: Lake
    context: Context
    journal: Journal
    readiness: Readiness
    ends: float
    progress: Progress
    loaded: Mapping[str, asyncio.Event]
    guards: Mapping[str, Guard]
    inherited: pa.Table


class Worker:
    """Warms one target.

    Args:
        run: What it shares with the others.
        target: The target.
        shares: Its layers in order, each with its items in order.
    """

    def __init__(self, run: Run, target: Target, shares: Sequence[Share]) -> None:
        self._run = run
        self._target = target
        self._shares = shares
        self._context = run.context
        self._config: ApplyConfig = run.context.config.apply
        self._generation = Generation(run.lake, target, run.context.plan_id)
        self._order = Order([layer for layer, _ in shares])
        self._cost = Cost()
        self._epoch = ""
        self._epochs: set[str] = set()
        self._stop: Exception | None = None
        self._recorded: set[str] = set()
        self._done = Done(target.name)

    async def run(self, receipts: pa.Table | None) -> Done:
        """Warm what is left and return what was done.

        A target that can't be used is given up with the reason in the result and in the receipts
        of the items that it did not get, so that the others go on.

        Args:
            receipts: The last receipts, to resume from; None: everything is done again.
        """
        try:
            async with LakeLock(self._run.lake, f"target-{self._target.name}"):
                try:
                    await self._warm_all(receipts)
                except TargetUnavailable as error:
                    await self._give_up(error.reason)
        except Locked as error:
            self._done.unavailable = str(error)
        except Superseded as error:
            self._done.superseded = error
        finally:
            self._loaded()
        return self._done

    def _loaded(self) -> None:
        """Tell those that wait for this host that nothing more will be loaded onto it."""
        if self._target.name in self._run.loaded:
            self._run.loaded[self._target.name].set()

    async def _warm_all(self, receipts: pa.Table | None) -> None:
        await self._run.readiness.ready(self._target.name)
        self._epoch = await self._retried(self._target.epoch)
        await self._retried(self._generation.claim)
        if receipts is None:
            layers = [layer.name for layer, _ in self._shares]
            await self._run.journal.forget(self._target.name, layers)
        try:
            for layer, items in self._shares:
                if layer.name not in LOADING:
                    self._loaded()
                async with measured(self._target) as self._cost:
                    self._done.costs[layer.name] = self._cost
                    with current().work("warmup.apply", self._context.plan_id, self._about(layer)):
                        mine = await self._layer(layer, items, receipts)
                if self._order.is_needed(layer):
                    await self._prove(layer, mine)
            if isinstance(self._target, ModelHost):
                self._done.can = await self._retried(self._target.capabilities)
                if self._done.unserved:
                    self._done.serves = sorted(await self._retried(self._target.served))
        except WindowOver:
            self._done.window_over = True
        if self._epochs - {await self._retried(self._target.epoch)}:
            raise TargetUnavailable(
                self._target.name,
                "it was restarted while it was being warmed; --resume warms what it lost",
            )

    def _about(self, layer: Layer) -> dict[str, str]:
        return {
            WARMUP_LAYER: layer.name,
            CACHE_LAYER: self._target.kind,
            CACHE_BACKEND: self._target.name,
        }

    async def _layer(
        self, layer: Layer, items: Sequence[PlanItem], receipts: pa.Table | None
    ) -> Sequence[PlanItem]:
        """Warm a layer; return which of its items this target can have."""
        arranged = await self._retried(partial(layer.arrange, items, self._target, self._context))
        self._done.notes += arranged.notes
        await self._settle(layer, items, arranged.skipped)
        left = arranged.items
        if receipts is not None:
            left = await self._left(layer, left, receipts)
        elif layer.target_kind == "host":
            left = await self._inherit(layer, left)
        blocked = self._order.blocked(layer, left)
        await self._settle(layer, left, blocked)
        without = {outcome.item_id for outcome in blocked}
        free = [item for item in left if item.item_id not in without]
        await self._batches(layer, [item for item in free if not layer.asks_host(item)])
        if asking := [item for item in free if layer.asks_host(item)]:
            await asyncio.gather(*[host.wait() for host in self._run.loaded.values()])
            await self._batches(layer, asking)
        return arranged.items

    async def _settle(
        self, layer: Layer, items: Sequence[PlanItem], outcomes: Sequence[Outcome]
    ) -> None:
        """Leave receipts of items about which all is known without asking the target."""
        by_id = {item.item_id: item for item in items}
        told = [by_id[outcome.item_id] for outcome in outcomes]
        if told:
            await self._record(layer, told, outcomes, self._epoch, 1)

    async def _left(
        self, layer: Layer, items: Sequence[PlanItem], receipts: pa.Table
    ) -> Sequence[PlanItem]:
        done = vouched(items, receipts, self._target.name, self._epoch, datetime.now(UTC))
        left = await self._retried(
            partial(remaining, layer, items, done, self._target, self._context)
        )
        open_ids = {item.item_id for item in left}
        kept = [item.item_id for item in items if item.item_id not in open_ids]
        self._order.warm(kept)
        self._done.kept += len(kept)
        self._recorded.update(kept)
        return left

    async def _inherit(self, layer: Layer, items: Sequence[PlanItem]) -> Sequence[PlanItem]:
        """Leave alone what plans that this one builds on warmed on this very process of a host.

        Their receipts become this plan's own, with the time when it was done. A Redis gets its
        items again all the same, for that renews their lifetime.
        """
        known = self._run.inherited
        known = known.filter(pc.equal(known["target"], self._target.name))
        if not known.num_rows:
            return items
        left = await self._left(layer, items, known)
        kept = {item.item_id for item in items} - {item.item_id for item in left}
        rows = known.filter(pc.is_in(known["item_id"], value_set=pa.array(sorted(kept), STR)))
        await self._run.journal.record(Receipt(**row) for row in rows.to_pylist())
        return left

    async def _prove(self, layer: Layer, items: Sequence[PlanItem]) -> None:
        """Look whether what later layers need is resident."""
        look = partial(self._order.prove, layer, items, self._target, self._context)
        if reason := await self._retried(look):
            self._done.not_ready[layer.name] = reason

    async def _batches(self, layer: Layer, items: Sequence[PlanItem]) -> None:
        # A Redis takes a batch in milliseconds; a host works seconds on one item.
        size = self._config.batch if layer.target_kind == "redis" else 1
        batches = (items[i : i + size] for i in range(0, len(items), size))
        workers = [self._drain(layer, batches) for _ in range(self._config.concurrency)]
        await asyncio.gather(*workers)
        if self._stop is not None:
            raise self._stop

    async def _drain(self, layer: Layer, batches: Iterator[Sequence[PlanItem]]) -> None:
        """Take batches until there are none or one failed; what is in flight is finished."""
        guard = self._run.guards.get(self._target.name)
        while self._stop is None:
            try:
                async with guard.place() if guard is not None else nullcontext():
                    batch = next(batches, None)
                    if batch is None or self._stop is not None:
                        return
                    if time.monotonic() >= self._run.ends:
                        raise WindowOver
                    await self._batch(layer, batch)
            except Exception as error:
                self._stop = self._stop or error  # raised again once nothing is in flight

    async def _batch(self, layer: Layer, batch: Sequence[PlanItem]) -> None:
        tries = 0

        async def warm() -> tuple[str, list[Outcome]]:
            nonlocal tries
            tries += 1
            if tries > 1:  # it may have been restarted since it was last asked
                self._epoch = await self._target.epoch()
            epoch = self._epoch
            await self._generation.check()
            return epoch, await layer.warm(batch, self._target, self._context)

        try:
            with current().batch(layer.name, self._target.name, self._target.kind) as seen:
                epoch, outcomes = await self._retried(warm)
                seen.key_hashes = [one.key_hash for one in outcomes if one.key_hash]
        except TargetUnavailable as error:
            await self._failed(layer, batch, error, tries)
            return
        await self._record(layer, batch, outcomes, epoch, tries)
        self._epochs.add(epoch)

    async def _failed(
        self, layer: Layer, batch: Sequence[PlanItem], error: TargetUnavailable, tries: int
    ) -> None:
        """Leave receipts of a batch that could not be warmed.

        Another target may be what is down, such as the host that generates answers for a Redis.
        One that is not ready yet is waited for. Else most of the batch can do without it: item by
        item, only those that need it fail.

        Raises:
            TargetUnavailable: It is this worker's own target that is down.
        """
        ours = error.target == self._target.name
        if not ours and self._run.readiness.pending(error.target):
            with suppress(TargetUnavailable):
                await self._run.readiness.ready(error.target)
            await self._batch(layer, batch)
            return
        if not ours:
            self._done.lacked[error.target] = error.reason
            if len(batch) > 1:
                for item in batch:
                    await self._batch(layer, [item])
                return
        why = error.reason if ours else str(error)
        failed = [Outcome(item.item_id, "failed", error=why) for item in batch]
        await self._record(layer, batch, failed, self._epoch, tries)
        if ours:
            raise error

    async def _give_up(self, reason: str) -> None:
        """Leave the reason with each item that the target did not get and is not known to hold."""
        self._done.unavailable = reason
        rows = self._run.journal.read().select(["item_id", "target", "status"]).to_pylist()
        held = {
            row["item_id"]
            for row in rows
            if row["target"] == self._target.name and row["status"] in ("warmed", "already")
        }
        for layer, items in self._shares:
            rest = [i for i in items if i.item_id not in self._recorded | held]
            missed = [Outcome(i.item_id, "failed", attempts=0, error=reason) for i in rest]
            await self._settle(layer, rest, missed)

    async def _record(
        self,
        layer: Layer,
        batch: Sequence[PlanItem],
        outcomes: Sequence[Outcome],
        epoch: str,
        tries: int,
    ) -> None:
        target, at = self._target.name, datetime.now(UTC)
        rows: list[Receipt] = []
        for item, outcome in zip(batch, outcomes, strict=True):
            rows.append(receipt(item, outcome, target, epoch, tries, at))
            self._tell(layer, item, outcome)
        await self._run.journal.record(rows)
        self._order.take_in(outcomes)
        self._cost.add(outcomes)
        self._recorded.update(item.item_id for item in batch)
        total = sum(len(items) for _, items in self._shares)
        self._run.progress(f"apply {target}", len(self._recorded), total)

    def _tell(self, layer: Layer, item: PlanItem, outcome: Outcome) -> None:
        if outcome.error == NOT_SERVED:
            self._done.unserved[layer.name, item.adapter or item.model] += 1
        elif outcome.status == "skipped":
            self._done.skipped[layer.name, outcome.error or "it can't be had there"] += 1
        elif outcome.status == "failed":
            self._done.failed[layer.name, outcome.error or "no reason is known"] += 1

    async def _retried(self, call: Callable[[], Awaitable[T]]) -> T:
        tries = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self._config.attempts),
            wait=_WAIT,
            retry=tenacity.retry_if_exception(self._may_pass),
            reraise=True,
        )
        return await tries(call)

    def _may_pass(self, error: BaseException) -> bool:
        return isinstance(error, TargetUnavailable) and error.target not in self._done.lacked
