"""The similarity of a log's texts: the stretch that is looked at, vectors, guard, thresholds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.dimensions.codes import Ints, joined
from warmup_lib.dimensions.reading import Log, text_hashes
from warmup_lib.dimensions.semantic import Mask, Matrix, semantic_keys
from warmup_lib.embed.opening import open_encoder
from warmup_lib.embed.texts import encode_texts
from warmup_lib.guard import tag
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress
from warmup_lib.threshold.force import in_force

if TYPE_CHECKING:
    import duckdb

_TEXTS = """
SELECT DISTINCT prompt, text_digest, hash(prompt) AS prompt_hash, hash(text_digest) AS digest_hash
FROM studied
"""


def latest(log: Log, texts: int) -> Log:
    """Return the longest last stretch of a log with at most so many distinct texts."""
    last = np.full(len(log.texts), -1, dtype=np.int64)
    last[log.text] = np.arange(log.requests)
    ends = np.sort(last[last >= 0])[::-1]
    return log.since(int(ends[texts]) + 1) if len(ends) > texts else log


class Similarity:
    """The semantic keys of a stretch of a log.

    Args:
        connection: Where the log was read (`read_log`).
        log: The stretch.
        lake: Where known vectors and calibrated thresholds are.
        config: Settings.
        progress: Told how many texts are encoded.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        log: Log,
        lake: Lake,
        config: Config,
        progress: Progress,
    ) -> None:
        self._log = log
        encoder = open_encoder(config)
        numbers, prompts, digests = _texts(connection, log)
        many = len(log.texts)
        self._tags = np.zeros(many, dtype=np.int64)
        self._tags[numbers] = np.unique([tag(p) for p in prompts], return_inverse=True)[1]
        found = _known(lake, encoder.fingerprint, digests)
        new = {d: p for d, p in zip(digests, prompts, strict=True) if d not in found}
        self.encoded = len(new)
        vectors, there = encode_texts(
            encoder,
            list(new.values()),
            config.encoder.batch_size,
            partial(_tell, progress, len(new)),
        )
        found |= {d: v for d, v, has in zip(new, vectors, there, strict=True) if has}
        self._has_vector: Mask = np.zeros(many, dtype=np.bool_)
        self._has_vector[numbers] = [digest in found for digest in digests]
        self._vectors: Matrix = np.zeros((many, encoder.dimension), dtype=np.float32)
        for number, digest in zip(numbers, digests, strict=True):
            if digest in found:
                self._vectors[number] = found[digest]
        thresholds = in_force(lake, config, encoder.fingerprint)
        self._threshold = np.array([thresholds.at(name) for name in log.tenants])[log.tenant]

    def keys(self, names: tuple[str, ...]) -> Ints:
        """Return the key of each request where these fields are kept."""
        log = self._log
        columns = [log.group, self._tags[log.text], *(log.values[name] for name in names)]
        place = joined(columns, log.requests)
        return semantic_keys(place, log.text, self._vectors, self._has_vector, self._threshold)


def _texts(connection: duckdb.DuckDBPyConnection, log: Log) -> tuple[Ints, list[str], list[str]]:
    """Return the numbers of a stretch's texts, the texts, and their identities."""
    rows = connection.sql(_TEXTS).to_arrow_table()
    hashes = text_hashes(rows["prompt_hash"].to_numpy(), rows["digest_hash"].to_numpy())
    # Rows that are no demand may hold texts that are not in the log.
    number = np.minimum(np.searchsorted(log.texts, hashes), len(log.texts) - 1)
    wanted = np.zeros(len(log.texts), dtype=np.bool_)
    wanted[log.text] = True
    kept = np.flatnonzero((log.texts[number] == hashes) & wanted[number])
    kept = kept[np.argsort(number[kept], kind="stable")]
    chosen = rows.take(pa.array(kept))
    prompts = [text or "" for text in chosen["prompt"].to_pylist()]
    return number[kept], prompts, chosen["text_digest"].to_pylist()


def _known(lake: Lake, encoder: str, digests: list[str]) -> dict[str, Any]:
    """Return the vectors that the lake has of texts, by identity."""
    connection = lake.sql()
    try:
        connection.register("wanted", pa.table({"text_digest": pa.array(digests, pa.string())}))
        rows = connection.sql(
            "SELECT text_digest, vector FROM vectors SEMI JOIN wanted USING (text_digest) "
            "WHERE encoder = $encoder",
            params={"encoder": encoder},
        ).to_arrow_table()
    finally:
        connection.close()
    if not rows.num_rows:
        return {}
    flat = rows["vector"].combine_chunks().flatten().to_numpy()
    vectors = flat.reshape(rows.num_rows, -1)
    return dict(zip(rows["text_digest"].to_pylist(), vectors, strict=True))


def _tell(progress: Progress, total: int, done: int) -> None:
    progress("embed", done, total)
