"""What waits for what on one target: items that a later layer needs and that are not resident."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warmup_lib.layers.base import Context, Layer, Outcome, PlanItem
from warmup_lib.targets.base import Target

_LOOK_AT_ONCE = 500


class Order:
    """The state of what layers need of each other on one target.

    Args:
        layers: The target's layers, in the order in which they are warmed.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._needed = {name for layer in layers for name in layer.needs}
        self._warm: set[str] = set()
        self._skipped: set[str] = set()
        self._why: dict[str, str] = {}
        self._missing: list[PlanItem] = []

    def is_needed(self, layer: Layer) -> bool:
        """Return whether another layer of this target needs this one."""
        return layer.name in self._needed

    def warm(self, item_ids: Iterable[str]) -> None:
        """Take in that items are warm."""
        self._warm.update(item_ids)

    def take_in(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what became of items."""
        for outcome in outcomes:
            if outcome.status in ("warmed", "already"):
                self._warm.add(outcome.item_id)
            elif outcome.status == "skipped":
                self._skipped.add(outcome.item_id)
            if outcome.error:
                self._why[outcome.item_id] = outcome.error

    async def prove(
        self, layer: Layer, items: Sequence[PlanItem], target: Target, context: Context
    ) -> str | None:
        """Look which items of a needed layer are resident; say why one is not.

        What the target can't have is not waited for: nor can it have what needs that.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        wanted = [item for item in items if item.item_id not in self._skipped]
        absent: dict[str, str] = {}
        for item in wanted:
            if item.item_id not in self._warm:
                absent[item.item_id] = self._why.get(item.item_id, "it was not warmed")
        held = [item for item in wanted if item.item_id not in absent]
        for start in range(0, len(held), _LOOK_AT_ONCE):
            proofs = await layer.prove(held[start : start + _LOOK_AT_ONCE], target, context)
            absent |= {proof.item_id: proof.evidence for proof in proofs if not proof.resident}
        self._missing += [item for item in wanted if item.item_id in absent]
        return next(iter(absent.values()), None)

    def blocked(self, layer: Layer, items: Sequence[PlanItem]) -> list[Outcome]:
        """Return outcomes of the items that can't be warmed for what they need is not resident."""
        missing = [item for item in self._missing if item.layer in layer.needs]
        if not missing:
            return []
        reasons = [(item.item_id, layer.blocked(item, missing)) for item in items]
        return [Outcome(i, "failed", attempts=0, error=why) for i, why in reasons if why]
