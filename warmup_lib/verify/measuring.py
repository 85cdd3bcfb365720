"""One window measured on all layers and targets: replayed live, and compared offline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warmup_lib.errors import TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.layers.base import SHARED, Context, Layer, PlanItem
from warmup_lib.stage import Progress
from warmup_lib.targets.base import Target
from warmup_lib.verify.baselines import Coverage, compare
from warmup_lib.verify.replay import Replayed, on_hosts, on_store
from warmup_lib.verify.residency import Row
from warmup_lib.verify.vectors import Encode, WindowVectors
from warmup_lib.verify.window import Window

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Subject:
    """What is verified, and where.

    Attributes:
        lake: The lake.
        items: The plan's items.
        plan_day: The plan's last log day, ISO date.
        layers: All layers, in order.
        targets: The opened targets.
        context: What the layers need.
    """

    lake: Lake
    items: Sequence[PlanItem]
    plan_day: str
    layers: Sequence[Layer]
    targets: Sequence[Target]
    context: Context

    def of(self, layer: Layer, tier: str | None = None) -> list[PlanItem]:
        """Return the items of a layer that are of one tier; None: its main ones."""
        return [i for i in self.items if i.layer == layer.name and i.tier == tier]

    @property
    def tiers(self) -> list[tuple[Layer, str]]:
        """The layers' tiers of which the plan holds items."""
        return [(la, tier) for la in self.layers for tier in la.tiers if self.of(la, tier)]

    def homes(self, layer: Layer) -> list[Target]:
        """Return the targets that can hold a layer."""
        return [target for target in self.targets if target.kind == layer.target_kind]

    @property
    def planned(self) -> list[Layer]:
        """The layers of which the plan holds items."""
        held = {item.layer for item in self.items}
        return [layer for layer in self.layers if layer.name in held]

    @property
    def looked_up(self) -> list[Layer]:
        """The planned layers that a request looks something up in: their items are tenants'."""
        return [la for la in self.planned if any(i.tenant != SHARED for i in self.of(la))]


@dataclass
class Measured:
    """What replaying a window gave, over all layers and targets.

    Attributes:
        rows: Rows of `hits`.
        baselines: By layer: the shares of other sets on the same requests, and of no set at all
            (`cold`: what the control found, null where there was none).
        controls: By layer and target: requests sent to the control (`asked`), and hits of them.
        others: Requests served by an entry that this plan did not warm.
        unserved: Requests that no host could be asked: of all those for adapters that no host
            serves, else of the sample.
        lost: Sampled requests with a planned head that was not found warm.
        uncrowded: Requests that were not sent cold too, for want of room in a host's cache.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    baselines: dict[str, dict[str, Any]] = field(default_factory=dict)
    controls: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    others: int = 0
    unserved: int = 0
    lost: int = 0
    uncrowded: int = 0

    @property
    def asked(self) -> int:
        """Requests sent to the control."""
        return self._controlled("asked")

    @property
    def control(self) -> int:
        """Of these, hits."""
        return self._controlled("hits")

    def _controlled(self, what: str) -> int:
        return sum(one[what] for targets in self.controls.values() for one in targets.values())

    def add(self, name: str, part: Replayed) -> None:
        """Add what one layer or tier gave on its targets."""
        self.rows += part.rows
        self.controls.setdefault(name, {}).update(part.control)
        self.others += part.others
        self.unserved += part.unserved
        self.lost += part.lost
        self.uncrowded += part.uncrowded


class Measuring:
    """Replays a window layer after layer.

    Args:
        subject: What is measured, and where.
        window: Later traffic.
        encode: Gives later texts their vectors, under the plan's encoder.
        proven: Residency rows, which say what of the plan is warm on each host.
        down: Targets that did not answer, with the reason; more are added.
        progress: Told how far each part is.
    """

    def __init__(
        self,
        subject: Subject,
        window: Window,
        encode: Encode,
        proven: Sequence[Row],
        down: dict[str, str],
        progress: Progress,
    ) -> None:
        self._subject = subject
        self._window = window
        self._vectors = WindowVectors(subject.context.vectors, encode)
        self._down = down
        self._progress = progress
        self._resident: dict[str, set[str]] = defaultdict(set)
        for row in proven:
            if row["resident"]:
                self._resident[row["target"]].add(row["item_id"])

    async def run(self) -> Measured:
        """Return what replaying and comparing gave; nothing for a window without requests."""
        measured = Measured()
        for layer in self._subject.looked_up if self._window.rows.num_rows else ():
            parts = await self._replay(layer)
            for part in parts:
                measured.add(layer.name, part)
            asked = sum(part.control_asked for part in parts)
            hits = sum(part.control_hits for part in parts)
            cold = hits / asked if asked else None
            requests = parts[0].requests if parts else self._window.rows
            if requests.num_rows and layer.by_request:
                shares = self._compare(layer, requests)
                measured.baselines[layer.name] = {"cold": cold, **shares}
        for layer, tier in self._subject.tiers if self._window.rows.num_rows else ():
            for part in await self._replay(layer, tier):
                measured.add(f"{layer.name} {tier}", part)
        return measured

    async def _replay(self, layer: Layer, tier: str | None = None) -> list[Replayed]:
        homes = [t for t in self._subject.homes(layer) if t.name not in self._down]
        items = self._subject.of(layer, tier)
        rows, context, progress = self._window.rows, self._subject.context, self._progress
        if layer.target_kind == "host" and homes:
            heads = {item.key_digest for item in items}
            resident, down = self._resident, self._down
            room = await self._room(layer, homes, items)
            return [
                await on_hosts(layer, homes, rows, context, heads, resident, room, down, progress)
            ]
        planned = {item.item_id for item in items}
        parts: list[Replayed] = []
        for target in homes:
            look = on_store(layer, target, rows, context, self._vectors, planned, progress, tier)
            try:
                parts.append(await look)
            except TargetUnavailable as error:
                self._down[error.target] = error.reason
        return parts

    async def _room(
        self, layer: Layer, homes: Sequence[Target], items: Sequence[PlanItem]
    ) -> dict[str, int]:
        """Return what each host that tells it takes in beside what it holds of the plan."""
        room: dict[str, int] = {}
        for target in homes:
            held = [item for item in items if item.item_id in self._resident[target.name]]
            try:
                tokens = await layer.room(held, target, self._subject.context)
            except TargetUnavailable:
                continue  # the replay finds that out, and names it
            if tokens is not None:
                room[target.name] = tokens
        return room

    def _compare(self, layer: Layer, requests: pa.Table) -> dict[str, Any]:
        """Return what other sets would have served of the very requests that were asked."""
        subject = self._subject
        self._progress(f"compare {layer.name}", 0, 1)
        coverage = Coverage(requests, layer, subject.context, self._vectors)
        shares = compare(
            subject.lake,
            coverage,
            layer,
            subject.of(layer),
            subject.plan_day,
            subject.context.config,
        )
        self._progress(f"compare {layer.name}", 1, 1)
        return shares
