"""Reading vectors back from the lake, one encoder's at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.embed.encoder import Floats
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake


class LakeVectors:
    """The vectors of one encoder over all days; those of another can't be reached through it.

    Nothing is read before it is asked for, and then only the days that hold a wanted text.
    Memory: 36 bytes for each text that was ever embedded, one day's vectors while reading, and
    what is returned.

    Args:
        lake: Where the `vectors` table is.
        fingerprint: The encoder's fingerprint.
    """

    def __init__(self, lake: Lake, fingerprint: str) -> None:
        self._lake = lake
        self._fingerprint = fingerprint

    @property
    def encoder(self) -> str:
        """Fingerprint of the encoder."""
        return self._fingerprint

    @cached_property
    def dimension(self) -> int:
        """Length of a vector.

        Raises:
            InputDataError: Nothing was embedded under this encoder.
        """
        for partition in self._partitions():
            manifest = self._lake.manifest("vectors", partition)
            if manifest is not None:
                return int(manifest.meta["dimension"])
        raise InputDataError(
            f"the lake has no vectors of encoder {self._fingerprint}: run `embed` for the days"
        )

    def get(self, digests: Sequence[str]) -> dict[str, Floats]:
        """Return float32 vectors of length 1; digests without one are absent."""
        found: dict[str, Floats] = {}
        for positions, vectors in self._find(digests):
            found.update(zip((digests[i] for i in positions), vectors, strict=True))
        return found

    def matrix(self, digests: Sequence[str]) -> Floats:
        """Return the vectors as rows, float32 (digests, dimension); zeros where there is none."""
        rows = np.zeros((len(digests), self.dimension), dtype=np.float32)
        for positions, vectors in self._find(digests):
            rows[positions] = vectors
        return rows

    def _partitions(self) -> list[dict[str, str]]:
        found = self._lake.partitions("vectors")
        return [p for p in found if p["encoder"] == self._fingerprint]

    @cached_property
    def _texts(self) -> list[tuple[dict[str, str], pa.ChunkedArray]]:
        return [
            (partition, self._lake.read("vectors", partition, ["text_digest"])["text_digest"])
            for partition in self._partitions()
        ]

    def _find(self, digests: Sequence[str]) -> Iterator[tuple[list[int], Floats]]:
        """Yield (positions in `digests`, their vectors) day by day; the first day wins."""
        wanted = np.arange(len(digests))
        asked = pa.array(digests, pa.string())
        for partition, known in self._texts:
            if not len(wanted):
                return
            here = pc.is_in(asked.take(pa.array(wanted)), value_set=known)
            if not pc.any(here, min_count=0).as_py():
                continue
            rows = self._lake.read("vectors", partition)
            at = pc.index_in(asked.take(pa.array(wanted)), value_set=rows["text_digest"])
            there = np.asarray(at.is_valid())
            picked = rows["vector"].take(at.drop_null()).combine_chunks()
            yield wanted[there].tolist(), _floats(picked)
            wanted = wanted[~there]


def vector_column(vectors: Floats) -> pa.Array:
    """Return vectors as the column that the `vectors` table stores."""
    count, dimension = vectors.shape
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(dimension))
    return pa.ListArray.from_arrays(offsets, pa.array(vectors.reshape(-1)))


def _floats(column: Any) -> Floats:
    flat: Floats = column.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1)
