"""Who proposes each candidate of a layer, and what follows from it for the choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import joined
from warmup_lib.plan.sources.base import Proposal
from warmup_lib.plan.sources.registry import SOURCES, switched_on

NATURAL = "natural_traffic"
"""Why a candidate is left out: a cache that traffic fills by itself does better with that room."""

_BITS = {name: 1 << place for place, name in enumerate(SOURCES)}
_OF_LOG = ("queries", "clusters", "heads")
_LOG, _PINNED = sum(_BITS[name] for name in _OF_LOG), _BITS["pinned"]

_KEYS = {
    ("responses", None): ("response_digest", "clusters"),
    ("embeddings", None): ("text_digest", "queries"),
    ("embeddings", "L1"): ("head_digest", "heads"),
    ("prefixes", None): ("head_digest", "heads"),
}
"""By layer and tier, what its candidates are prompts or heads by, and which source proposes them
for the log. All others follow from the demand as a whole, and no source proposes them."""


@dataclass(frozen=True)
class Proposed:
    """Who proposes the candidates of one layer and tier. All arrays have one entry a candidate.

    Attributes:
        by: Sources as bits, in the registry's order; 0: the demand as a whole.
        weight: What their heat counts for, the highest of their sources' weights.
        quota: Most of them that the log's own demand may choose; None: no limit of its own.
        beyond: Why what is beyond the quota is left out.
    """

    by: Ints
    weight: np.ndarray[Any, np.dtype[np.float64]]
    quota: int | None = None
    beyond: str = "below_budget"

    @staticmethod
    def by_demand(count: int) -> Proposed:
        """Return that nobody in particular proposes so many candidates."""
        return Proposed(np.zeros(count, np.int64), np.ones(count))

    def reserved(self, items: int) -> Proposed:
        """Return the same where so many are to be warmed, and traffic brings the rest itself."""
        if self.quota is not None and self.quota <= items:
            return self
        return replace(self, quota=items, beyond=NATURAL)

    def room(self, limit: int) -> int:
        """Return how many items of a limit the log's own demand may choose, natural traffic aside.

        Args:
            limit: Most items of all sources.
        """
        return limit if self.quota is None or self.natural else min(limit, self.quota)

    @property
    def natural(self) -> bool:
        """Whether what is beyond the quota is left to traffic."""
        return self.beyond == NATURAL

    @property
    def of_log(self) -> Ints:
        """Which source proposes each for the log, as a bit; 0: the demand as a whole, or none."""
        return self.by & _LOG

    @cached_property
    def logged(self) -> Mask:
        """Which the log's own demand may choose, by heat."""
        return np.asarray((self.by == 0) | (self.by & _LOG > 0))

    @cached_property
    def named(self) -> Mask:
        """Which some other source has chosen already."""
        return np.asarray(self.by & ~_LOG > 0)

    @cached_property
    def pinned(self) -> Mask:
        """Which go first."""
        return np.asarray(self.by & _PINNED > 0)

    def sources(self, row: int, by_log: bool) -> list[str] | None:
        """Return the sources that chose a candidate; None: it follows from the demand as a whole.

        Args:
            row: The candidate.
            by_log: The log's own demand chose it too.
        """
        if not self.by[row]:
            return None
        bits = int(self.by[row]) if by_log else int(self.by[row]) & ~_LOG
        return [name for name, bit in _BITS.items() if bits & bit]


@dataclass(frozen=True)
class Proposals:
    """What the sources propose, each by itself.

    Attributes:
        prompts: The demand's prompts, those of the user's lists among them.
        heads: Its heads.
        by: What each source proposes of them, by its name.
        config: The settings.
    """

    prompts: pa.Table
    heads: pa.Table
    by: Mapping[str, Proposal]
    config: Config

    def of(self, layer: str, tier: str | None, candidates: pa.Table) -> tuple[pa.Table, Proposed]:
        """Return those candidates of one layer and tier that some source proposes, and who does."""
        if (layer, tier) not in _KEYS:
            return candidates, Proposed.by_demand(candidates.num_rows)
        key, log = _KEYS[layer, tier]
        level = "heads" if key == "head_digest" else "prompts"
        rows: pa.Table = getattr(self, level)
        bits = np.zeros(rows.num_rows, np.int64)
        for source in switched_on(self.config):
            if layer in source.layers:
                bits[getattr(self.by[source.name], level)] |= _BITS[source.name]
        by = _spread(bits, rows, key, candidates)
        proposed = np.flatnonzero(by)
        settings = self.config.plan.sources
        weight = np.zeros(len(proposed))
        for name, bit in _BITS.items():
            ours = by[proposed] & bit > 0
            weight[ours] = np.maximum(weight[ours], getattr(settings, name).weight)
        made = Proposed(by[proposed], weight, getattr(settings, log).limit)
        return candidates.take(pa.array(proposed)), made


def _spread(bits: Ints, rows: pa.Table, key: str, candidates: pa.Table) -> Ints:
    """Return for each candidate the bits of all rows that it stands for."""
    known = joined(rows["tenant"], rows[key]).combine_chunks().dictionary_encode()
    together = np.zeros(len(known.dictionary), np.int64)
    np.bitwise_or.at(together, known.indices.to_numpy(), bits)
    asked = joined(candidates["tenant"], candidates["key_digest"])
    place = pc.index_in(asked, value_set=known.dictionary).to_numpy()
    return np.asarray(together[place], dtype=np.int64)
