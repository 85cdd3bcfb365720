"""What a source of text gives the generator: tenants, their pools of prompts, and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from samples.texts import Tenant

T = TypeVar("T")


@dataclass(frozen=True)
class Prompt:
    """One question that can be asked again.

    Attributes:
        text: the question as written.
        follow: later turns of the conversation, each with its answer.
        chunk_ids: retrieved chunks, best first; empty where the tenant retrieves nothing.
        button: whether the application suggests it, so that it is asked word for word.
    """

    text: str
    locale: str
    intent: str
    answer: str
    follow: tuple[tuple[str, str], ...] = ()
    chunk_ids: tuple[str, ...] = ()
    button: bool = False


class Source(Protocol):
    """Where the texts come from."""

    name: str

    def tenants(self) -> Sequence[Tenant]:
        """Return the tenants."""

    def pool(self, tenant: Tenant, size: int, rng: np.random.Generator) -> list[Prompt]:
        """Return up to `size` distinct prompts of the tenant, buttons first."""

    def documents(self) -> Mapping[str, Iterable[tuple[str, list[str]]]]:
        """Return the retrieval pages by tenant: name and the texts of its chunks."""


def pick(options: Sequence[T], rng: np.random.Generator, skew: float = 1.0) -> T:
    """Return one of the options; a skew above 1 prefers the first ones."""
    return options[int(len(options) * rng.random() ** skew)]


def weighted(weights: Sequence[float], rng: np.random.Generator) -> int:
    """Return an index drawn in proportion to the weights."""
    left = rng.random() * sum(weights)
    for i, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return i
    return len(weights) - 1
