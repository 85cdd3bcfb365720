"""Vectors of later texts: from the lake where they are known, else encoded for this run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from warmup_lib.keys import embedding_text
from warmup_lib.layers.base import Vector, Vectors

Encode = Callable[[Sequence[str]], Sequence[Vector]]


class WindowVectors:
    """Gives every text of a window its vector; nothing is written to the lake.

    Args:
        known: Vectors in the lake.
        encode: Turns texts into vectors of length 1, under the same encoder.
    """

    def __init__(self, known: Vectors, encode: Encode) -> None:
        self._known = known
        self._encode = encode
        self._made: dict[str, Vector] = {}

    @property
    def encoded(self) -> int:
        """Distinct texts that were encoded."""
        return len(self._made)

    def of(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Return the vectors of texts, given by their digest."""
        found = dict(self._known.get(list(texts)))
        new = sorted(digest for digest in texts if digest not in found and digest not in self._made)
        if new:
            made = self._encode([embedding_text(texts[digest]) for digest in new])
            self._made |= dict(zip(new, made, strict=True))
        return found | {digest: self._made[digest] for digest in texts if digest in self._made}
