"""The parts of a plan, one a layer and tier, and their choices: each by itself, or all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.layers.base import Layer
from warmup_lib.layers.demand import Demand
from warmup_lib.plan.assembly import Entrant
from warmup_lib.plan.budgets import Shared, choose, sharing
from warmup_lib.plan.feedback import Feedback, Heeded
from warmup_lib.plan.offer import ByCoverage, ByHeat, Offer, of_tier
from warmup_lib.plan.points import Matrix
from warmup_lib.plan.reserve import Reserve
from warmup_lib.plan.selection import Choice, needed
from warmup_lib.plan.sources.proposed import Proposals
from warmup_lib.plan.value import Value
from warmup_lib.stage import Progress
from warmup_lib.tables import PLAN
from warmup_lib.threshold.force import Thresholds


@dataclass(frozen=True)
class Part:
    """One layer's part of the plan, or that of one of its tiers.

    Attributes:
        layer: The layer.
        tier: The tier; None: the layer's main items.
        offer: What may be chosen from.
        caught: What the current plan still catches, in millionths of a hit a day.
        refused: What must not be warmed, rows of the `left_out` table.
        asked: What the log asks for of it, whatever sources propose: rows of the `plan` table.
    """

    layer: Layer
    tier: str | None
    offer: Offer
    caught: int
    refused: pa.Table
    asked: pa.Table

    @property
    def name(self) -> str:
        """The layer's name."""
        return self.layer.name

    @property
    def level(self) -> str:
        """The level of demand that its items serve: heads, texts, or prompts in their context."""
        if self.layer.target_kind == "host":
            return "head"
        return "text" if self.layer.match == "exact" else "prompt"

    def entrant(self, warm: pa.Table) -> Entrant:
        """Return the part as one of those that share budgets, beside what of it is warm."""
        kind = self.layer.target_kind
        return Entrant(self.name, self.tier, kind, self.offer, self.of(warm), self.asked)

    def beyond(self, warm: pa.Table, total: int) -> Choice:
        """Choose what has to be added to warm items until all catch `total` together."""
        return self.offer.beyond(self.of(warm), total)

    def until(self, choice: Choice, warm: pa.Table, total: int) -> Choice:
        """Return as much of a choice as catches `total` together with warm items."""
        ours = self.of(warm)
        kept = needed(choice.expected, total - self.offer.caught(ours))
        if choice.by_log is None or kept >= len(choice.rows):
            return choice
        return self.offer.only(choice.rows[:kept], ours, choice.by_log[:kept])

    def of(self, items: pa.Table) -> pa.Table:
        """Return those of some items that are this part's, rows of the `plan` table."""
        return of_tier(items.filter(pc.equal(items["layer"], self.name)), self.tier)


def open_parts(
    layers: Sequence[Layer],
    demand: Demand,
    proposals: Proposals,
    config: Config,
    vectors: Matrix,
    known: pa.Table,
    thresholds: Thresholds,
    feedback: Feedback,
    progress: Progress,
    reserved: Mapping[str, Reserve] = MappingProxyType({}),
) -> list[Part]:
    """Return the parts of a plan.

    Args:
        layers: The layers, in order.
        demand: What is asked for.
        proposals: What the sources propose of it.
        config: The settings.
        vectors: Vectors under the demand's encoder.
        known: The items of the current plan.
        thresholds: From which similarity on each tenant's prompts serve each other.
        feedback: What earlier plans teach.
        progress: Told how far the coverage is.
        reserved: What backtests say of layers.
    """
    parts = []
    for layer in layers:
        held = known.filter(pc.equal(known["layer"], layer.name))
        heeded = feedback.heed(layer.candidates(demand, config), demand.prompts, proposals)
        refused = pa.concat_tables([layer.refused(demand, config), heeded.refused])
        most = reserved[layer.name].items if layer.name in reserved else None
        offers = open_offers(
            layer, heeded, proposals, config, vectors, held, thresholds, progress, most
        )
        asked = heeded.candidates.filter(pc.greater(heeded.candidates["heat_micro"], 0))
        for tier, offer in offers.items():
            caught, ours = offer.caught(of_tier(held, tier)), of_tier(asked, tier)
            parts.append(Part(layer, tier, offer, caught, refused, ours))
            refused = refused.slice(0, 0)
    return parts


def open_offers(
    layer: Layer,
    heeded: Heeded,
    proposals: Proposals,
    config: Config,
    vectors: Matrix,
    known: pa.Table,
    thresholds: Thresholds,
    progress: Progress,
    reserve: int | None = None,
) -> dict[str | None, Offer]:
    """Return a layer's offers, one a tier, each under its own limit; the main one is None.

    Args:
        layer: The layer.
        heeded: What it may hold, and the demand's prompts.
        proposals: What the sources propose of it.
        config: The settings.
        vectors: Vectors under the demand's encoder.
        known: The items of an older plan that `caught` and `beyond` will ask about.
        thresholds: From which similarity on each tenant's prompts serve each other.
        progress: Told how far the coverage is.
        reserve: Most main items that the log's own demand may choose; None: what the layer holds.
    """
    offers: dict[str | None, Offer] = {}
    for tier, limit in layer.limits(config).items():
        ours, proposed = proposals.of(layer.name, tier, of_tier(heeded.candidates, tier))
        if tier is None and reserve is not None and reserve < limit:
            proposed = proposed.reserved(reserve)
        held = of_tier(known, tier)
        offers[tier] = (
            ByHeat(ours, limit, proposed)
            if layer.match == "exact" or tier is not None
            else ByCoverage(
                heeded.prompts, ours, held, vectors, thresholds, limit, progress, proposed
            )
        )
    return offers


@dataclass(frozen=True)
class Chooser:
    """How the parts of a plan are chosen.

    Attributes:
        config: The settings.
        value: What items save and take.
        clusters: `tenant`, `text_digest` and `cluster_id`; None: no cluster has a cap.
    """

    config: Config
    value: Value
    clusters: pa.Table | None

    def best(self, parts: Sequence[Part]) -> Shared:
        """Choose as if nothing were warm."""
        if not sharing(self.config):
            return _alone([part.offer.best() for part in parts])
        return self._together(parts, PLAN.empty())

    def beyond(self, parts: Sequence[Part], best: Shared, warm: pa.Table) -> Shared:
        """Choose what has to be added to warm items until all catch as much as the best choice."""
        totals = [choice.total for choice in best.choices]
        pairs = list(zip(parts, totals, strict=True))
        if not sharing(self.config):
            return _alone([part.beyond(warm, total) for part, total in pairs])
        made = self._together(parts, warm)
        cut = [
            part.until(choice, warm, total)
            for choice, (part, total) in zip(made.choices, pairs, strict=True)
        ]
        return replace(made, choices=cut)

    def _together(self, parts: Sequence[Part], warm: pa.Table) -> Shared:
        entrants = [part.entrant(warm) for part in parts]
        return choose(entrants, self.config, self.value, self.clusters)


def _alone(choices: Sequence[Choice]) -> Shared:
    return Shared(choices, [{} for _ in choices], {"budgets": {}})
