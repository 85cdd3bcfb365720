"""Builds the rows of candidates and refusals by columns, fast enough for a million prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.layers.base import item_id
from warmup_lib.tables import LEFT_OUT, PLAN

_EMPTY: Mapping[str, Any] = {
    "rank": 0,
    "expected_micro": 0,
    "expected_variance": 0.0,
    "expected_low": 0,
    "expected_high": 0,
    "reason": "",
    "model": "",
}


def plan_rows(
    layer: str, source: pa.Table, columns: Mapping[str, Any], *, by_content: bool = False
) -> pa.Table:
    """Return rows of the `plan` table, with the item ids filled in.

    Args:
        layer: The layer's name.
        source: Rows that hold at least `tenant` and `heat_micro`. A column of the plan that
            `columns` does not give is taken from here where it is, else empty.
        columns: Columns as arrays, or one value for all rows; `key_digest` is needed. The item id
            is made of tenant, key digest, model, revision and adapter.
        by_content: It is made of the source digest too, so that changed content is another item.
    """
    here = {name: source[name] for name in source.column_names}
    given: dict[str, Any] = {**_EMPTY, **here, **columns, "layer": layer}
    filled = {f.name: _filled(given.get(f.name), f.type, source.num_rows) for f in PLAN.schema}
    place = ["tenant", "key_digest", "model", "model_revision", "adapter"]
    if by_content:
        place.append("source_digest")
    parts = [filled[name].to_pylist() for name in place]
    ids = [item_id(layer, *of_row) for of_row in zip(*parts, strict=True)]
    filled["item_id"] = pa.array(ids, pa.string())
    return pa.table(filled).select(PLAN.schema.names).cast(PLAN.schema)


def _filled(value: Any, kind: pa.DataType, count: int) -> Any:
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    return pa.repeat(pa.scalar(value, kind), count)


def refused_rows(layer: str, source: pa.Table, digest: str, reason: Any) -> pa.Table:
    """Return rows of the `left_out` table.

    Args:
        layer: The layer's name.
        source: Rows that hold `tenant`, `heat_micro` and the column named by `digest`.
        digest: Name of the column with the identity.
        reason: One word for all rows, or an array of words.
    """
    count = source.num_rows
    if isinstance(reason, str):
        reason = pa.repeat(pa.scalar(reason), count)
    layers = pa.repeat(pa.scalar(layer), count)
    columns = [layers, source["tenant"], source[digest], source["heat_micro"], reason]
    names = ["layer", "tenant", "digest", "heat_micro", "reason"]
    return pa.table(columns, names).select(LEFT_OUT.schema.names).cast(LEFT_OUT.schema)


def utf8_bytes(column: Any) -> Any:
    """Return the length of each text in bytes; 0 where there is none."""
    return pc.fill_null(pc.cast(pc.binary_length(column), pa.int64()), 0)
