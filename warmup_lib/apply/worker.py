"""One target's share of an apply: layer after layer, batches in flight, retries, receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import tenacity

from warmup_lib.apply.generation import Generation
from warmup_lib.apply.lock import LakeLock, Locked
from warmup_lib.apply.receipts import Journal, Receipt
from warmup_lib.apply.resume import remaining, vouched
from warmup_lib.config import ApplyConfig
from warmup_lib.errors import Superseded, TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, Outcome, PlanItem
from warmup_lib.stage import Progress
from warmup_lib.targets.base import Target

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

Share = tuple[Layer, Sequence[PlanItem]]
"""One layer and its items, as one target gets them."""

_WAIT = tenacity.wait_random_exponential(multiplier=0.5, max=30)
"""Full jitter: many workers that lost one target don't return to it at the same moment."""


@dataclass
class Done:
    """What one target's worker did.

    Attributes:
        target: The target's name.
        warmed: Items warmed by this run.
        bytes: Bytes written by this run.
        kept: Items that a resume found warm and left alone.
        unavailable: Why the target was given up; None: it was not.
        superseded: The newer plan's claim that stopped this run; None: nothing did.
        lacked: Other targets that some items needed and that did not answer, with the reason.
    """

    target: str
    warmed: int = 0
    bytes: int = 0
    kept: int = 0
    unavailable: str | None = None
    superseded: Superseded | None = None
    lacked: dict[str, str] = field(default_factory=dict)


class Worker:
    """Warms one target.

    Args:
        lake: The lake, for the lock.
        target: The target.
        shares: Its layers in order, each with its items in order.
        context: What the layers need.
        journal: Where receipts go.
        progress: Told after each batch.
    """

    def __init__(
        self,
        lake: Lake,
        target: Target,
        shares: Sequence[Share],
        context: Context,
        journal: Journal,
        progress: Progress,
    ) -> None:
        self._lake = lake
        self._target = target
        self._shares = shares
        self._context = context
        self._journal = journal
        self._progress = progress
        self._config: ApplyConfig = context.config.apply
        self._generation = Generation(lake, target, context.plan_id)
        self._epoch = ""
        self._epochs: set[str] = set()
        self._stop: Exception | None = None
        self._seen = 0
        self._done = Done(target.name)

    async def run(self, receipts: pa.Table | None) -> Done:
        """Warm what is left and return what was done.

        A target that can't be used is given up with the reason in the result, so that the others
        go on; its remaining items get no receipt.

        Args:
            receipts: The last receipts, to resume from; None: everything is done again.
        """
        try:
            async with LakeLock(self._lake, f"target-{self._target.name}"):
                await self._warm_all(receipts)
        except TargetUnavailable as error:
            self._done.unavailable = error.reason
        except Locked as error:
            self._done.unavailable = str(error)
        except Superseded as error:
            self._done.superseded = error
        return self._done

    async def _warm_all(self, receipts: pa.Table | None) -> None:
        self._epoch = await self._retried(self._target.epoch)
        await self._retried(self._generation.claim)
        if receipts is None:
            await self._journal.forget(self._target.name, [layer.name for layer, _ in self._shares])
        for layer, items in self._shares:
            left = items if receipts is None else await self._left(layer, items, receipts)
            await self._layer(layer, left)
        if self._epochs - {await self._retried(self._target.epoch)}:
            raise TargetUnavailable(
                self._target.name,
                "it was restarted while it was being warmed; --resume warms what it lost",
            )

    async def _left(
        self, layer: Layer, items: Sequence[PlanItem], receipts: pa.Table
    ) -> Sequence[PlanItem]:
        done = vouched(items, receipts, self._target.name, self._epoch, datetime.now(UTC))
        left = await self._retried(
            partial(remaining, layer, items, done, self._target, self._context)
        )
        self._done.kept += len(items) - len(left)
        self._seen += len(items) - len(left)
        return left

    async def _layer(self, layer: Layer, items: Sequence[PlanItem]) -> None:
        # A Redis takes a batch in milliseconds; a host works seconds on one item.
        size = self._config.batch if layer.target_kind == "redis" else 1
        batches = (items[i : i + size] for i in range(0, len(items), size))
        workers = [self._drain(layer, batches) for _ in range(self._config.concurrency)]
        await asyncio.gather(*workers)
        if self._stop is not None:
            raise self._stop

    async def _drain(self, layer: Layer, batches: Iterator[Sequence[PlanItem]]) -> None:
        """Take batches until there are none or one failed; what is in flight is finished."""
        for batch in batches:
            if self._stop is not None:
                return
            try:
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
            epoch, outcomes = await self._retried(warm)
        except TargetUnavailable as error:
            await self._failed(layer, batch, error, tries)
            return
        await self._record(layer, batch, outcomes, epoch, tries)
        self._epochs.add(epoch)
        self._done.warmed += sum(o.status == "warmed" for o in outcomes)
        self._done.bytes += sum(o.bytes for o in outcomes)

    async def _failed(
        self, layer: Layer, batch: Sequence[PlanItem], error: TargetUnavailable, tries: int
    ) -> None:
        """Leave receipts of a batch that could not be warmed.

        Where another target is down, such as the host that generates answers for a Redis, most
        of the batch can do without it: item by item, only those that need it fail.

        Raises:
            TargetUnavailable: It is this worker's own target that is down.
        """
        ours = error.target == self._target.name
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

    async def _record(
        self,
        layer: Layer,
        batch: Sequence[PlanItem],
        outcomes: Sequence[Outcome],
        epoch: str,
        tries: int,
    ) -> None:
        at = datetime.now(UTC)
        await self._journal.record(
            Receipt(
                item_id=item.item_id,
                layer=layer.name,
                tenant=item.tenant,
                target=self._target.name,
                target_epoch=epoch,
                status=outcome.status,
                attempts=outcome.attempts + tries - 1,
                bytes=outcome.bytes,
                tokens=outcome.tokens,
                ms=outcome.ms,
                ttl_s=outcome.ttl_s,
                error=outcome.error,
                at=at,
            )
            for item, outcome in zip(batch, outcomes, strict=True)
        )
        self._seen += len(batch)
        total = sum(len(items) for _, items in self._shares)
        self._progress(f"apply {self._target.name}", self._seen, total)

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
