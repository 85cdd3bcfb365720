"""What an encoder is: its protocol, its limits and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]

MAX_CHARS = 20_000
"""The longest text that any encoder is given: memory grows with it."""


class Encoder(Protocol):
    """Turns texts into vectors. Two encoders with one fingerprint give the same vectors."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits over model, weights, dimension, normalisation and pooling."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def reads_whole(self, texts: Sequence[str]) -> list[bool]:
        """Say of each text whether the encoder sees all of it, or would cut its end off."""

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return float32 vectors of length 1, shape (texts, dimension), in order."""


def fingerprint(**facts: object) -> str:
    """Return 16 hex digits over what makes an encoder's vectors what they are."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
