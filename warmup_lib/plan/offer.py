"""What one layer offers to a plan: its candidates, and how the best of them are chosen.

A layer whose entries serve by identity is chosen from by heat; one whose entries also serve
similar prompts, by coverage. That is how the log's own demand chooses; what other sources name has
been chosen by them, and comes beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.plan.attribution import by_nearest
from warmup_lib.plan.coverage import COST, Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import Matrix, ints, lay_out
from warmup_lib.plan.selection import Choice, most_asked, most_covering, served_points
from warmup_lib.plan.sources.proposed import Proposed
from warmup_lib.plan.sources.united import (
    all_covering,
    all_of,
    credited,
    joined_choices,
    united,
)
from warmup_lib.stage import Progress
from warmup_lib.tables import MICRO
from warmup_lib.threshold.force import Thresholds

_BYTES_PER_TOKEN = 4
_POOL = 4
"""Prompts that shared budgets choose from, for one that the layer may hold."""

_USES = {
    ("embeddings", "L1"): "send it",
    ("embeddings", "L2"): "are of its users",
    ("retrieval", None): "retrieve it",
    ("retrieval", "L3"): "are of its cluster",
}
"""What requests have to do with an item, by layer and tier, where they do not hold it."""
_UNASKED = "no request for it is expected"


class Offer(Protocol):
    """One layer's part in making a plan. Items and candidates are rows of the `plan` table."""

    @property
    def candidates(self) -> pa.Table:
        """What may be chosen."""

    def best(self) -> Choice:
        """Choose as if nothing were warm."""

    def caught(self, items: pa.Table) -> int:
        """Return the expected hits of items of an older plan, in millionths a day."""

    def beyond(self, items: pa.Table, total: int) -> Choice:
        """Choose what has to be added to warm items until all catch `total` together."""

    def pool(self, items: pa.Table, cost: Ints | None, tenants: Mapping[str, int]) -> Choice:
        """Return what the log's demand may choose under shared budgets, blind to other sources.

        Args:
            items: What is warm already.
            cost: (n,) what each candidate takes of the budgets, `COST` or more.
            tenants: Who is to get so many items whatever others ask for.

        Returns:
            Each with what it would add.
        """

    def named(self, rows: Ints, items: pa.Table) -> Choice:
        """Return what other sources name, beside these rows and warm items."""

    def only(self, rows: Ints, items: pa.Table, by_log: Mask) -> Choice:
        """Return these rows as a choice beside warm items, best first.

        Args:
            rows: They.
            items: What is warm already.
            by_log: Which of them the log's own demand chose.
        """

    def looked_up(self, choice: Choice, items: pa.Table) -> Choice:
        """Return a choice with the hits that look-ups will give each of its items.

        Args:
            choice: Made beside warm items.
            items: These, rows of the `plan` table.
        """

    def reason(self, choice: Choice, position: int) -> str:
        """Say why the choice at a position was made, without any text of it."""

    @property
    def limit(self) -> int:
        """Most items."""

    @property
    def proposed(self) -> Proposed:
        """Who proposes the candidates."""


def of_tier(items: pa.Table, tier: str | None) -> pa.Table:
    """Return the rows of one tier."""
    return items.filter(
        pc.is_null(items["tier"]) if tier is None else pc.equal(items["tier"], tier)
    )


class ByHeat:
    """Entries that serve by identity only: what is asked for most is warmed."""

    def __init__(self, candidates: pa.Table, limit: int, proposed: Proposed | None = None) -> None:
        self.candidates = candidates
        self.proposed = proposed or Proposed.by_demand(candidates.num_rows)
        self.limit = limit
        self._heat = ints(candidates["heat_micro"])
        self._tokens = _head_tokens(candidates)
        kinds = (candidates[name].to_pylist() for name in ("layer", "tier"))
        self._kinds = list(zip(*kinds, strict=True))
        self._rank = np.empty(candidates.num_rows, np.int64)
        order = pc.sort_indices(
            candidates.select(["key_digest", "tenant", "item_id"]),
            [(name, "ascending") for name in ("key_digest", "tenant", "item_id")],
        )
        self._rank[ints(order)] = np.arange(candidates.num_rows)

    def best(self) -> Choice:
        """Choose as if nothing were warm."""
        own = self._choose(np.zeros(len(self._heat), np.bool_), None)
        named = self.proposed.named.copy()
        named[own.rows] = False
        return self._with(own, all_of(self._heat, self._rank, named))

    def caught(self, items: pa.Table) -> int:
        """Return the expected hits of items of an older plan, in millionths a day."""
        return int(self._heat[self._held(items)].sum())

    def beyond(self, items: pa.Table, total: int) -> Choice:
        """Choose what has to be added to warm items until all catch `total` together."""
        held = self._held(items)
        named = all_of(self._heat, self._rank, self.proposed.named & ~held)
        held[named.rows] = True
        return self._with(self._choose(held, total - self.caught(items) - named.total), named)

    def pool(self, items: pa.Table, cost: Ints | None, tenants: Mapping[str, int]) -> Choice:  # noqa: ARG002
        """Return what the log's demand may choose under shared budgets: all that is asked for."""
        asked = (self._heat > 0) & self.proposed.logged
        return all_of(self._heat, self._rank, asked & ~self._held(items))

    def named(self, rows: Ints, items: pa.Table) -> Choice:
        """Return what other sources name, beside these rows and warm items."""
        named = self.proposed.named & ~self._held(items)
        named[rows] = False
        return all_of(self._heat, self._rank, named)

    def only(self, rows: Ints, items: pa.Table, by_log: Mask) -> Choice:  # noqa: ARG002
        """Return these rows as a choice beside warm items, best first."""
        chosen = self._marked(rows)
        made = all_of(self._heat, self._rank, chosen)
        return credited(made, self.proposed, self._marked(rows[by_log]))

    def looked_up(self, choice: Choice, items: pa.Table) -> Choice:  # noqa: ARG002
        """Return a choice with the hits that look-ups will give each of its items."""
        return choice

    def reason(self, choice: Choice, position: int) -> str:
        """Say why the choice at a position was made, without any text of it."""
        row = choice.rows[position]
        if not choice.expected[position]:
            return _UNASKED
        asked = f"{_a_day(choice.expected[position])} expected requests a day"
        if use := _USES.get(self._kinds[row]):
            return f"{asked} {use}"
        tokens = int(self._tokens[row])
        return f"{asked} share its {tokens:,} tokens (estimated)" if tokens else f"{asked} need it"

    def _choose(self, held: Mask, enough: int | None) -> Choice:
        limit = _quota(self.limit, self.proposed)
        return most_asked(self._heat, self._rank, held | ~self.proposed.logged, limit, enough)

    def _with(self, own: Choice, named: Choice) -> Choice:
        if not len(named.rows):
            return own
        both = united(own, named, self.proposed, self.limit)
        return replace(both, covered=both.rows)

    def _marked(self, rows: Ints) -> Mask:
        marked = np.zeros(len(self._heat), np.bool_)
        marked[rows] = True
        return marked

    def _held(self, items: pa.Table) -> Mask:
        known = items["item_id"].combine_chunks()
        return np.asarray(pc.is_in(self.candidates["item_id"], value_set=known), dtype=np.bool_)


class ByCoverage:
    """Entries that serve similar prompts too: what serves the most together is warmed."""

    def __init__(
        self,
        prompts: pa.Table,
        candidates: pa.Table,
        known: pa.Table,
        vectors: Matrix,
        thresholds: Thresholds,
        limit: int,
        progress: Progress,
        proposed: Proposed | None = None,
    ) -> None:
        self.candidates = candidates
        self.proposed = proposed or Proposed.by_demand(candidates.num_rows)
        self._points = lay_out(prompts, candidates, known)
        self._vectors = vectors
        self._threshold = self._points.by_tenant(thresholds.at)
        self.limit = limit
        self._progress = progress

    def best(self) -> Choice:
        """Choose as if nothing were warm."""
        nothing = np.zeros(len(self._points.heat), np.bool_)
        own = self._choose(nothing, nothing)
        if not self.proposed.named.any():
            return own
        held = self._rows_of(own)
        named, _ = self._name(held, self._served_by(held))
        return self._with(own, named, nothing)

    def caught(self, items: pa.Table) -> int:
        """Return the expected hits of items of an older plan, in millionths a day."""
        return int(self._points.heat[self._served_by(self._points.holding(items))].sum())

    def beyond(self, items: pa.Table, total: int) -> Choice:
        """Choose what has to be added to warm items until all catch `total` together."""
        warm = self._points.holding(items)
        held, named = warm, None
        served = self._served_by(warm)
        if self.proposed.named.any():
            named, served = self._name(warm, served)
            held = warm | self._rows_of(named)
        enough = total - int(self._points.heat[served].sum())
        own = self._choose(held, served, enough)
        return own if named is None else self._with(own, named, warm)

    def pool(self, items: pa.Table, cost: Ints | None, tenants: Mapping[str, int]) -> Choice:
        """Return what the log's demand may choose under shared budgets, blind to other sources.

        These are more than there is room for: what covers the most for its cost, over all and of
        each tenant with a floor.
        """
        warm = self._points.holding(items)
        served = self._served_by(warm)
        free = self._among(self.proposed.logged) & ~warm
        per_point = None if cost is None else np.append(cost, COST)[self._points.candidate]
        lists = [(_POOL * self.limit, np.zeros(len(free), np.bool_))]
        for tenant, floor in tenants.items():
            ours = pc.starts_with(self._points.key, pattern=f"{tenant}\0")
            lists.append((floor, ~np.asarray(ours, dtype=np.bool_)))
        own = [
            most_covering(
                self._points,
                self._vectors,
                self._threshold,
                most,
                self._progress,
                held=~free | others,
                served=served | others,
                cost=per_point,
            )
            for most, others in lists
            if most
        ]
        return joined_choices(own) if own else _none()

    def named(self, rows: Ints, items: pa.Table) -> Choice:
        """Return what other sources name, beside these rows and warm items."""
        held = self._points.holding(items) | self._among(self._marked(rows))
        if not self.proposed.named.any():
            return _none()
        named, _ = self._name(held, self._served_by(held))
        return named

    def only(self, rows: Ints, items: pa.Table, by_log: Mask) -> Choice:
        """Return these rows as a choice beside warm items, best first."""
        chosen = self._marked(rows)
        warm = self._points.holding(items)
        made, _ = all_covering(
            self._points, self._vectors, self._threshold, self._among(chosen), self._served_by(warm)
        )
        covered = self._points.candidate[self._served_by(warm | self._among(chosen))]
        made = replace(made, covered=covered[covered >= 0])
        return credited(made, self.proposed, self._marked(rows[by_log]))

    def looked_up(self, choice: Choice, items: pa.Table) -> Choice:
        """Return a choice with the hits that look-ups will give each of its items."""
        warm, chosen = self._points.holding(items), self._rows_of(choice)
        added = self._served_by(warm | chosen) & ~self._served_by(warm)
        place = np.full(self.candidates.num_rows, -1, dtype=np.int64)
        place[self._points.candidate[chosen]] = np.flatnonzero(chosen)
        nearest = by_nearest(self._points, self._vectors, place[choice.rows], added | chosen)
        mine = nearest >= 0
        expected = np.zeros(len(choice.rows), np.int64)
        np.add.at(expected, nearest[mine], self._points.heat[mine])
        texts = np.bincount(nearest[mine], minlength=len(expected)).astype(np.int64)
        return replace(choice, expected=expected, texts=texts)

    def reason(self, choice: Choice, position: int) -> str:
        """Say why the choice at a position was made, without any text of it."""
        if not choice.expected[position]:
            return _UNASKED
        phrasings = int(choice.texts[position])
        return (
            f"covers {_a_day(choice.expected[position])} expected requests a day of "
            f"{phrasings:,} phrasing{'s' if phrasings > 1 else ''}"
        )

    def _choose(self, held: Mask, served: Mask, enough: int | None = None) -> Choice:
        return most_covering(
            self._points,
            self._vectors,
            self._threshold,
            _quota(self.limit, self.proposed),
            self._progress,
            held=held | ~self._among(self.proposed.logged),
            served=served,
            enough=enough,
        )

    def _name(self, held: Mask, served: Mask) -> tuple[Choice, Mask]:
        """Return what other sources name and is not held, and what is served with it."""
        rows = self._among(self.proposed.named) & ~held
        return all_covering(self._points, self._vectors, self._threshold, rows, served)

    def _with(self, own: Choice, named: Choice, warm: Mask) -> Choice:
        both = united(own, named, self.proposed, self.limit)
        if len(both.rows) == len(own.rows) + len(named.rows):
            return both
        covered = self._points.candidate[self._served_by(warm | self._rows_of(both))]
        return replace(both, covered=covered[covered >= 0])

    def _among(self, candidates: Mask) -> Mask:
        """Return which points are some candidates."""
        return np.append(candidates, False)[self._points.candidate]

    def _rows_of(self, choice: Choice) -> Mask:
        """Return which points are chosen."""
        return self._among(self._marked(choice.rows))

    def _marked(self, rows: Ints) -> Mask:
        marked = np.zeros(self.candidates.num_rows, np.bool_)
        marked[rows] = True
        return marked

    def _served_by(self, held: Mask) -> Mask:
        return served_points(self._points, self._vectors, self._threshold, held)


def _none() -> Choice:
    nothing = np.zeros(0, np.int64)
    return Choice(nothing, nothing, nothing, nothing)


def _quota(limit: int, proposed: Proposed) -> int:
    """Return how many the log's own demand may choose."""
    return limit if proposed.quota is None else min(limit, proposed.quota)


def _head_tokens(candidates: pa.Table) -> Ints:
    """Estimate the tokens of heads; 0 for a candidate with a user text."""
    lengths = [
        ints(pc.fill_null(pc.cast(pc.binary_length(candidates[name]), pa.int64()), 0))
        for name in ("system_prompt", "tools")
    ]
    of_head = np.asarray(pc.is_null(candidates["text"]), dtype=np.bool_)
    return np.where(of_head, sum(lengths) // _BYTES_PER_TOKEN, 0)


def _a_day(micro: int) -> str:
    count = micro / MICRO
    return f"{count:,.1f}" if count >= 0.1 else f"{count:.2g}"
