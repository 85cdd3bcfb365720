"""What sources choose from, and what one of them proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.layers.base import Vector, Vectors
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import ints


@dataclass(frozen=True)
class Material:
    """The demand as sources see it.

    Attributes:
        prompts: `Demand.prompts`; what only the user's lists name stands in it with 0 requests.
        heads: `Demand.heads`, the same.
        listed: What the user's lists name, in their order: rows of the `listed` table.
        prompt_of: (n listed,) row of `prompts`; -1: it names a head alone.
        head_of: (n listed,) row of `heads`; -1: it has none.
        scores: What A/B tests gave: see `warmup_lib.plan.sources.scores`.
        vectors: Embeddings of the texts; None: there are none.
        dimension: Length of a vector.
    """

    prompts: pa.Table
    heads: pa.Table
    listed: pa.Table
    prompt_of: Ints
    head_of: Ints
    scores: pa.Table
    vectors: Vectors | None = None
    dimension: int = 0

    def vectors_of(self, digests: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of texts; those without one are absent."""
        return self.vectors.get(digests) if self.vectors is not None else {}

    def of_list(self, source: str) -> Ints:
        """Return the rows of `listed` that one source reads."""
        mine = pc.equal(self.listed["source"], source)
        return np.flatnonzero(np.asarray(mine, dtype=np.bool_))

    def asked(self) -> Mask:
        """Return which prompts the log holds a request of."""
        return np.asarray(ints(self.prompts["requests"]) > 0)

    def nothing(self) -> Proposal:
        """Return a proposal of nothing."""
        return Proposal(
            np.zeros(self.prompts.num_rows, np.bool_), np.zeros(self.heads.num_rows, np.bool_)
        )

    def named(self, rows: Ints) -> Proposal:
        """Return what some rows of `listed` name, as a proposal."""
        proposal = self.nothing()
        for mask, place in (
            (proposal.prompts, self.prompt_of[rows]),
            (proposal.heads, self.head_of[rows]),
        ):
            mask[place[place >= 0]] = True
        return proposal


@dataclass(frozen=True)
class Proposal:
    """What one source proposes.

    Attributes:
        prompts: (n,) which of the material's prompts.
        heads: (m,) which of its heads.
    """

    prompts: Mask
    heads: Mask


class Source(Protocol):
    """One source. Registered in `warmup_lib.plan.sources.registry`.

    Attributes:
        name: Its name in settings and plans.
        layers: The layers it proposes for.
    """

    name: str
    layers: tuple[str, ...]

    def propose(self, material: Material, config: Config) -> Proposal:
        """Choose, without a look at other sources."""


def first_of_each(groups: list[Any], most: int) -> list[int]:
    """Return the places of the first `most` of each group, in order."""
    seen: dict[Any, int] = {}
    places = []
    for place, group in enumerate(groups):
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= most:
            places.append(place)
    return places
