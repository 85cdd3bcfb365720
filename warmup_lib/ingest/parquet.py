"""Parquet rows as a stream: a batch of a row group at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from io import BufferedIOBase
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from warmup_lib.ingest.outcome import Raw, Reason

MAGIC = b"PAR1"

_BATCH = 1024
_PLAIN = (str, int, bool, datetime)


def read_parquet(handle: BufferedIOBase) -> Iterator[Raw]:
    """Yield the rows of a Parquet file.

    One that breaks off or is damaged ends with a row that says so. Nested values come as JSON
    would hold them; NaN, which pandas writes for "none", as None.
    """
    position = 0
    try:
        # The footer is read first, so a file that was cut shows it here.
        file = pq.ParquetFile(handle, memory_map=False, pre_buffer=False)
    except (pa.ArrowException, OSError):
        yield Raw(1, None, None, reason=Reason.TRUNCATED)
        return
    try:
        for batch in file.iter_batches(batch_size=_BATCH):
            for row in batch.to_pylist():
                position += 1
                yield Raw(position, None, None, {k: _plain(v) for k, v in row.items()})
    except (pa.ArrowException, OSError):
        yield Raw(position + 1, None, None, reason=Reason.DAMAGED)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    option = orjson.OPT_NON_STR_KEYS
    return orjson.loads(orjson.dumps(value, default=str, option=option))
