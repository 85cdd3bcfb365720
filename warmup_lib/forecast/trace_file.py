"""Reads id traces from files: CSV, JSON lines, and Mooncake's lists of block hashes."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from datetime import tzinfo
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.trace import Ints, Reals, Trace, trace_of
from warmup_lib.forecast.trace_csv import read_rows
from warmup_lib.ingest.lines import DAMAGED, decompressed, read_lines

COLUMNS = ("ts", "item", "cost_ms", "bytes", "tenant")
"""Columns of a trace; a CSV file without a header has them in this order."""

_NEEDS = "a trace needs the columns ts and item (or, for block traces, timestamp and hash_ids)"
_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (np.inf, 1e-3))
"""(below this it is seconds / ms / us / ns, microseconds in one)."""

_LARGEST = 2.0**53
"""The largest time (microseconds: the year 2255) and amount; whole floats are exact up to it."""

_OBJECT = re.compile(rb"""\A\s*\{|^[ \t]*\{[ \t]*\"""", re.MULTILINE)
_LOOKED_AT = 64 * 1024
Columns = dict[str, list[Any]]


def read_trace(path: Path, zone: tzinfo) -> Trace:
    """Read a trace, compressed (gzip, zstd) or not; its content tells the format.

    CSV and JSON lines hold `ts,item[,cost_ms][,bytes][,tenant]`. `ts` is ISO-8601 or an epoch in
    s, ms, us or ns, told by magnitude. An item of one tenant is not that of another. A row with
    `timestamp` and `hash_ids` is a request: its blocks are accesses in their order; whole numbers
    below 10^11 in `timestamp` are milliseconds there, others seconds. Rows that can't be used are
    counted, whatever they are; times before 1970 and after the year 2254 are such. An empty
    `cost_ms` or `bytes` counts as nothing.

    Args:
        path: The file.
        zone: Where times without zone were taken.

    Raises:
        InputDataError: No such file, no such columns, or no row that can be used.
    """
    if not path.is_file():
        raise InputDataError(f"no such trace file: {path}")
    rejected: Counter[str] = Counter()
    with path.open("rb") as handle:
        packed = decompressed(handle, handle.peek(4)[:4])
        text = io.BufferedReader(cast("Any", packed), _LOOKED_AT)
        try:
            lines = _OBJECT.search(text.peek(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf"))
        except DAMAGED:
            raise InputDataError(f"{path.name} is damaged from its beginning") from None
        if lines:
            columns = _json_rows(text, rejected)
        else:
            with io.TextIOWrapper(text, "utf-8-sig", errors="backslashreplace", newline="") as rows:
                columns = _csv_rows(rows, rejected)
    read = len(columns["ts"]) + rejected.total()
    if not read:
        raise InputDataError(f"{path.name} holds no rows")
    trace = _arranged(columns, zone, rejected)
    if trace is None:
        why = ", ".join(f"{reason}: {count}" for reason, count in rejected.most_common())
        raise InputDataError(f"none of the {read} rows of {path.name} can be used ({why})")
    at, item, cost, size = trace
    return trace_of(at, item, cost, size, read, rejected)


def _json_rows(stream: BufferedIOBase, rejected: Counter[str]) -> Columns:
    """Return the columns of a trace, and those of block traces where any row is of one."""
    columns: Columns = {name: [] for name in (*COLUMNS, "hash_ids")}
    named = blocks = False
    for raw in read_lines(stream, _decoded):
        row = raw.value if raw.reason is None else None
        if not isinstance(row, dict):
            rejected[raw.reason.value if raw.reason else "no object"] += 1
            continue
        if "hash_ids" in row:
            blocks = True
            row = {**row, "ts": row.get("timestamp", row.get("ts")), "item": None}
        named = named or ("ts" in row and "item" in row)
        for name, column in columns.items():
            column.append(row.get(name))
    if columns["ts"] and not named:
        raise InputDataError(_NEEDS)
    if not blocks:
        del columns["hash_ids"]
    return columns


def _decoded(line: bytes) -> Any:
    """Return a row whose ids are whole however long: orjson makes floats of those above 2^64."""
    row = orjson.loads(line)
    if not isinstance(row, dict):
        return row
    blocks = row.get("hash_ids")
    ids = [row.get("item"), row.get("tenant"), *(blocks if isinstance(blocks, list) else ())]
    try:
        return json.loads(line) if any(type(one) is float for one in ids) else row
    except RecursionError:
        return row


def _csv_rows(stream: io.TextIOBase, rejected: Counter[str]) -> Columns:
    columns: Columns = {name: [] for name in COLUMNS}
    rows = read_rows(stream, rejected)
    head = next(rows, None)
    if head is None:
        return columns
    names = [name.strip().lower() for name in head]
    if not {"ts", "item"} <= set(names):
        if len(head) < 2 or not head[0].strip().lstrip("+-")[:1].isdigit():
            raise InputDataError(_NEEDS)
        names, rows = list(COLUMNS[: len(head)]), chain([head], rows)
    places = {name: names.index(name) for name in COLUMNS if name in names}
    for row in rows:
        if len(row) != len(names):
            rejected["wrong number of columns"] += 1
            continue
        for name in COLUMNS:
            columns[name].append(row[places[name]] if name in places else None)
    return columns


def _arranged(
    columns: Columns, zone: tzinfo, rejected: Counter[str]
) -> tuple[Ints, Ints, Reals | None, Reals | None] | None:
    """Return times, items, costs and sizes of the rows that can be used; None where none can."""
    blocks = columns.get("hash_ids")
    at = _times(columns["ts"], zone, blocks is not None)
    cost, size = _amounts(columns["cost_ms"]), _amounts(columns["bytes"])
    ids = [_flat(one) for one in blocks or ()]
    item = _numbered(columns["item"])
    tenant = _numbered(columns["tenant"])
    said = np.array([one not in (None, "") for one in columns["tenant"]], bool)
    good = np.ones(len(at), bool)
    for reason, bad in (
        ("bad ts", at < 0),
        ("bad item", item < 0 if blocks is None else np.array([one is None for one in ids], bool)),
        ("bad tenant", said & (tenant < 0)),
        ("bad cost_ms", False if cost is None else ~np.isfinite(cost)),
        ("bad bytes", False if size is None else ~np.isfinite(size)),
    ):
        if (count := int(np.sum(good & bad))) > 0:
            rejected[reason] += count
        good &= ~np.asarray(bad)
    if not good.any():
        return None
    spread = np.flatnonzero(good)
    if blocks is not None:
        item = _numbered(list(chain.from_iterable(ids[i] or () for i in spread)))
        spread = np.repeat(spread, [len(ids[i] or ()) for i in spread])
    else:
        item = item[spread]
    item = item + (tenant[spread] + 1) * (int(item.max(initial=0)) + 1)
    return (
        at[spread],
        item,
        None if cost is None else cost[spread],
        None if size is None else size[spread],
    )


def _flat(blocks: Any) -> list[Any] | None:
    """Return a request's blocks, or None where it is no list of ids."""
    if isinstance(blocks, list) and all(type(one) in (int, str) and one != "" for one in blocks):
        return blocks
    return None


def _numbered(values: list[Any]) -> Ints:
    """Return a number for each distinct id, -1 for what is none; 12 and "12" are the same id."""
    import pandas as pd

    texts = [
        value if type(value) is str else str(value) if type(value) is int else None
        for value in values
    ]
    codes, _ = pd.factorize(np.array([t or None for t in texts], object))
    return codes.astype(np.int64)


def _amounts(values: list[Any]) -> Reals | None:
    """Return amounts, NaN for what is none or out of range; None where the column is not there."""
    import pandas as pd

    if all(value is None for value in values):
        return None
    given = pd.Series([0 if v is None or v == "" else v for v in values], dtype=object)
    given = given.mask(given.map(lambda v: isinstance(v, bool)), np.nan)
    amounts = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.where((amounts >= 0) & (amounts <= _LARGEST), amounts, np.nan)


def _times(values: list[Any], zone: tzinfo, of_blocks: bool) -> Ints:
    """Return microseconds since 1970, -1 for what is no time."""
    import pandas as pd

    given = pd.Series(values, dtype=object)
    given = given.where(given.map(lambda v: type(v) in (int, float, str)), None)
    number = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    # Nanoseconds are the largest numbers there are; larger ones would overflow below.
    number = np.where((number >= 0) & (number < _LARGEST * 1e3), number, np.nan)
    known = number[np.isfinite(number)]
    # The median: one wrong time must not change what all others mean.
    if of_blocks and len(known) and np.median(known) < _UNITS[0][0]:
        found = number * (1e3 if np.all(known == np.floor(known)) else 1e6)
    else:
        found = np.select([number < below for below, _ in _UNITS], [number * f for _, f in _UNITS])
        found[~np.isfinite(number)] = np.nan
    text = given.where(np.isnan(number), None)
    if text.notna().any():
        found = np.where(np.isnan(number), _iso(text, zone), found)
    return np.where((found >= 0) & (found < _LARGEST), np.round(found), -1).astype(np.int64)


def _iso(texts: Any, zone: tzinfo) -> Reals:
    """Return microseconds since 1970 of ISO-8601 texts, NaN for what is none."""
    import pandas as pd

    texts = texts.where(texts.map(lambda v: isinstance(v, str) and len(v) >= 8), None)
    zoned = texts.astype("string").str.contains(r"(?:[zZ]|[+-]\d{2}:?\d{2})$", na=False)
    found = np.full(len(texts), np.nan)
    for chosen, own in ((zoned, True), (~zoned & texts.notna(), False)):
        if not chosen.any():
            continue
        some = texts[chosen].str.upper()
        times = pd.to_datetime(some, format="ISO8601", utc=own, errors="coerce")
        if not own:
            times = times.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
        micros = times.dt.tz_convert("UTC").dt.as_unit("us").astype("int64").to_numpy()
        found[np.flatnonzero(chosen)] = np.where(times.isna(), np.nan, micros)
    return found
