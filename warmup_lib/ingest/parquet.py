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
            for row in _rows(batch):
                position += 1
                if row is None:
                    yield Raw(position, None, None, reason=Reason.INVALID_UTF8)
                else:
                    yield Raw(position, None, None, {k: _plain(v) for k, v in row.items()})
    except (pa.ArrowException, OSError):
        yield Raw(position + 1, None, None, reason=Reason.DAMAGED)


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of a batch; None for one whose text is not UTF-8."""
    try:
        yield from batch.to_pylist()
    except (OverflowError, ValueError):
        # Nothing was yielded yet: the whole batch is converted before its first row comes.
        for index in range(batch.num_rows):
            try:
                yield {n: _python(batch.column(n)[index]) for n in batch.schema.names}
            except UnicodeDecodeError:
                yield None


def _python(scalar: pa.Scalar) -> Any:
    """Return a value; as text where Python's own type can't hold it, such as the year 148,000."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        raise
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.StructScalar):
            return {name: _python(value) for name, value in scalar.items()}
        if isinstance(scalar, pa.ListScalar):
            return [_python(value) for value in scalar.values]
        return f"{scalar.cast(pa.int64()).as_py()} {scalar.type}"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    option = orjson.OPT_NON_STR_KEYS
    return orjson.loads(orjson.dumps(value, default=str, option=option))
