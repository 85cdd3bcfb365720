"""Vectors of later texts: from the lake where they are known, else encoded for this run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from warmup_lib.config import Config
from warmup_lib.embed.encoder import Encoder
from warmup_lib.errors import ConfigError
from warmup_lib.layers.base import Vector, Vectors

Encode = Callable[[Sequence[str]], tuple[Vector, np.ndarray[Any, np.dtype[np.bool_]]]]
"""Returns vectors as rows, of length 1 or all zero, and which of the texts have one."""


def open_encode(config: Config, fingerprint: str) -> Encode:
    """Return what encodes later texts; the encoder is opened once, at the first one.

    Args:
        config: The settings.
        fingerprint: Of the plan's encoder; another one raises `ConfigError` at the first text.
    """
    from warmup_lib.embed.opening import open_encoder
    from warmup_lib.embed.texts import encode_texts

    @cache
    def opened() -> Encoder:
        encoder = open_encoder(config)
        if encoder.fingerprint != fingerprint:
            raise ConfigError(
                f"the plan was made under encoder {fingerprint}, the settings name "
                f"{encoder.fingerprint}: use the plan's encoder or make a new plan"
            )
        return encoder

    return lambda texts: encode_texts(opened(), texts, config.encoder.batch_size)


class WindowVectors:
    """Gives the texts of a window their vectors; nothing is written to the lake.

    Args:
        known: Vectors in the lake.
        encode: Encodes texts under the same encoder.
    """

    def __init__(self, known: Vectors, encode: Encode) -> None:
        self._known = known
        self._encode = encode
        self._have: dict[str, Vector | None] = {}
        self.encoded = 0

    def of(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Return the vectors of texts, given by digest; a text that can have none is absent."""
        asked = [digest for digest in texts if digest not in self._have]
        if asked:
            self._have |= self._known.get(asked)
        new = sorted(digest for digest in asked if digest not in self._have)
        if new:
            vectors, there = self._encode([texts[digest] for digest in new])
            self.encoded += len(new)
            for digest, vector, has_one in zip(new, vectors, there, strict=True):
                self._have[digest] = vector if has_one else None
        found = ((digest, self._have[digest]) for digest in texts)
        return {digest: vector for digest, vector in found if vector is not None}
