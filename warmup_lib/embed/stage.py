"""The stage that gives the texts of a day their vectors: prompts, lists, chunks -> vectors."""

from __future__ import annotations

import time
from functools import partial

import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.embed.encoder import Encoder
from warmup_lib.embed.opening import open_encoder
from warmup_lib.embed.texts import encode_texts
from warmup_lib.embed.vectors import vector_column
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import VECTORS

_PART = 65_536
_TEXTS = """
texts AS (
    SELECT text_digest, text, false AS chunk FROM prompts WHERE day = CAST($day AS DATE)
    UNION ALL
    SELECT text_digest, text, false AS chunk FROM listed
    WHERE day = CAST($day AS DATE) AND text_digest IS NOT NULL
    UNION ALL
    SELECT text_digest, text, true AS chunk FROM chunks WHERE day = CAST($day AS DATE)
)"""
_DISTINCT = f"""
WITH {_TEXTS}
SELECT
    COUNT(DISTINCT text_digest) AS texts,
    COUNT(DISTINCT text_digest) FILTER (WHERE chunk) AS chunks
FROM texts
"""
_NEW = f"""
WITH {_TEXTS},
known AS (
    SELECT text_digest FROM vectors WHERE encoder = $encoder
)
SELECT text_digest, MIN(text) AS text
FROM texts
ANTI JOIN known USING (text_digest)
GROUP BY text_digest
ORDER BY text_digest
"""


def run(lake: Lake, day: str, config: Config, progress: Progress = silent) -> StageReport:
    """Add to `vectors` what texts and chunks of `day` have none yet under the configured encoder.

    A text is encoded once, ever: a vector stays where it was first stored, and rebuilding a day
    adds only what is new. Parts are stored as they are made, so a run that was killed goes on
    where it stopped. Memory: the new texts, and the vectors of 65,536 of them.

    Raises:
        InputDataError: `day` was not distilled.
        ConfigError: The encoder can't be opened, or its vectors can't be right.
    """
    started = time.perf_counter()
    if lake.manifest("prompts", {"day": day}) is None:
        raise InputDataError(
            f"no prompts for {day}: run `distil` for it first, as `warmup plan --day {day}` does"
        )
    encoder = open_encoder(config)
    texts, chunks, new = _new_texts(lake, day, encoder.fingerprint)
    encoding = time.perf_counter()
    embedded, rows = _store(lake, day, config, encoder, new, progress)
    seconds = time.perf_counter() - encoding
    unreadable = new.num_rows - embedded
    notes = (
        "texts that are empty or longer than the encoder reads, and so have no vector and are "
        f"matched exactly only: {unreadable}",
    )
    return StageReport(
        "embed",
        rows_in=texts,
        rows_out=rows,
        seconds=time.perf_counter() - started,
        notes=notes if unreadable else (),
        facts={
            "texts": texts,
            "chunk_texts": chunks,
            "embedded": embedded,
            "reused": texts - new.num_rows,
            "unreadable": unreadable,
            "texts_per_s": round(new.num_rows / seconds, 1),
            "encoder": encoder.fingerprint,
            "encoder_name": config.encoder.name,
            "dimension": encoder.dimension,
        },
    )


def _new_texts(lake: Lake, day: str, fingerprint: str) -> tuple[int, int, pa.Table]:
    """Return the distinct texts of the day, those of them that are chunks, and what is new."""
    connection = lake.sql()
    try:
        [counted] = connection.sql(_DISTINCT, params={"day": day}).to_arrow_table().to_pylist()
        new = connection.sql(_NEW, params={"day": day, "encoder": fingerprint}).to_arrow_table()
    finally:
        connection.close()
    return int(counted["texts"]), int(counted["chunks"]), new


def _store(
    lake: Lake, day: str, config: Config, encoder: Encoder, new: pa.Table, progress: Progress
) -> tuple[int, int]:
    """Return the texts that got a vector now, and the rows the partition has."""
    partition = {"encoder": encoder.fingerprint, "day": day}
    meta = {"dimension": encoder.dimension, "encoder_name": config.encoder.name}
    manifest = lake.append("vectors", partition, VECTORS.empty(), meta)
    embedded = 0
    for start in range(0, new.num_rows, _PART):
        part = new.slice(start, _PART)
        vectors, has_vector = encode_texts(
            encoder,
            [text or "" for text in part["text"].to_pylist()],
            config.encoder.batch_size,
            partial(_tell, progress, new.num_rows, start),
        )
        rows = pa.table(
            {
                "text_digest": part["text_digest"].filter(pa.array(has_vector)),
                "vector": vector_column(vectors[has_vector]),
            }
        )
        manifest = lake.append("vectors", partition, rows)
        embedded += rows.num_rows
    return embedded, manifest.rows


def _tell(progress: Progress, total: int, before: int, done: int) -> None:
    progress("embed", before + done, total)
