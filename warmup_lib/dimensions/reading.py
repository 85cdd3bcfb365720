"""From rows of `requests` to columns of numbers, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.dimensions import fields
from warmup_lib.dimensions.codes import Hashes, Ints, dense, distinct, mixed
from warmup_lib.dimensions.fields import JsonField
from warmup_lib.keys import canonical_text

if TYPE_CHECKING:
    import duckdb

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_DEMAND = "NOT COALESCE(warmup, false) AND NOT COALESCE(health, false)"
_ANSWERED = """
COALESCE(response, '') <> '' AND COALESCE(status, 200) < 400 AND NOT COALESCE(cache_hit, false)
"""
"""An answer that a cache gave is another request's: it tells nothing about this one."""

_ODD = "[^ -~]|  |^ | $"
"""What a text must hold for its canonical form to be another one."""

_BATCH = 65_536


@dataclass(frozen=True)
class Log:
    """Requests that are demand, by time of arrival.

    Attributes:
        at: (requests,) when they came.
        tenant: (requests,) number of the tenant, in `tenants`.
        question: (requests,) number of tenant, last user text and history.
        group: (requests,) number of tenant and history.
        text: (requests,) number of the last user text as logged, in `texts`.
        contract: (requests,) number of the identity of an answer by the key contract.
        answer: (requests,) number of the answer in its canonical form, -1: none of its own.
        asked: (requests,) did not go round the caches.
        tenants: Names by number.
        texts: Hashes of the texts, by number, which is their order (see `text_hashes`).
        values: By field that could be a dimension: (requests,) number of its value.
        left_out: By other field: why it can't be one.
    """

    at: Ints
    tenant: Ints
    question: Ints
    group: Ints
    text: Ints
    contract: Ints
    answer: Ints
    asked: Mask
    tenants: Sequence[str]
    texts: Hashes
    values: Mapping[str, Ints]
    left_out: Mapping[str, str]

    @property
    def requests(self) -> int:
        """Requests in the log."""
        return len(self.question)

    def since(self, row: int) -> Log:
        """Return the requests from a row on; numbers keep their meaning."""
        columns = ("at", "tenant", "question", "group", "text", "contract", "answer", "asked")
        return replace(
            self,
            **{name: getattr(self, name)[row:] for name in columns},
            values={name: value[row:] for name, value in self.values.items()},
        )


def read_log(
    connection: duckdb.DuckDBPyConnection, relation: str, zone: str, without: Collection[str]
) -> Log:
    """Read a log.

    Args:
        connection: DuckDB with the relation.
        relation: Rows of `requests`, such as a view and its days.
        zone: IANA name of the zone whose hours count.
        without: Fields that are not studied.
    """
    connection.execute(f"CREATE OR REPLACE TEMP VIEW studied AS SELECT * FROM {relation}")
    extra, left_out = fields.extra_fields(_structures(connection, "extra"))
    params = fields.params_fields(_structures(connection, "params"))
    rows = _rows(connection, zone, extra, params)
    folded = _canonical(connection, "prompt")(rows["prompt_hash"])
    answers = _canonical(connection, "response")(rows["answer_hash"])
    tenants = rows["tenant"].combine_chunks().dictionary_encode()
    tenant = np.asarray(tenants.indices, np.int64)
    group = mixed(tenant, rows["history_hash"])
    # Two texts that differ in case only have one text identity, and two that differ in what was
    # redacted have one text: together they are the text as it was asked.
    question = dense(mixed(group, folded, rows["digest_hash"]))
    texts, text = np.unique(
        text_hashes(rows["prompt_hash"], rows["digest_hash"]), return_inverse=True
    )
    reals = {field.name for field in extra if field.real}
    kept, unused = _usable(_values(rows, extra, params), reals, without)
    return Log(
        at=np.asarray(rows["ts"].cast(pa.int64()), np.int64),
        tenant=tenant,
        question=question,
        group=dense(group),
        text=text.astype(np.int64, copy=False),
        contract=dense(mixed(tenant, rows["contract_hash"])),
        answer=np.where(np.asarray(rows["answered"]), dense(answers), -1),
        asked=np.asarray(rows["asked"]),
        tenants=tenants.dictionary.to_pylist(),
        texts=texts,
        values=kept,
        left_out={**left_out, **unused},
    )


def text_hashes(prompt: Hashes, digest: Hashes) -> Hashes:
    """Return the hashes of texts, of DuckDB's hashes of `prompt` and `text_digest`."""
    return mixed(prompt, digest)


def _structures(connection: duckdb.DuckDBPyConnection, column: str) -> list[str]:
    query = f"SELECT DISTINCT json_structure({column}) FROM studied WHERE {column} IS NOT NULL"
    return [found for (found,) in connection.execute(query).fetchall() if found.startswith("{")]


def _rows(
    connection: duckdb.DuckDBPyConnection,
    zone: str,
    extra: Sequence[JsonField],
    params: Sequence[JsonField],
) -> Any:
    columns = ", ".join(f'{value} AS "{name}"' for name, value in fields.COLUMNS.items())
    query = f"""
    SELECT
        ts,
        tenant,
        hash(NULLIF(history, '[]')) AS history_hash,
        hash(prompt) AS prompt_hash,
        hash(response) AS answer_hash,
        hash(response_digest) AS contract_hash,
        hash(text_digest) AS digest_hash,
        {_ANSWERED} AS answered,
        NOT COALESCE(bypass, false) AS asked,
        json_extract_string(extra, $extra) AS extra_values,
        json_extract(params, $params) AS params_values,
        {columns}
    FROM studied
    WHERE {_DEMAND}
    ORDER BY ts, tenant, request_id
    """
    pointers = {
        "extra": [f.pointer for f in extra] or ["/"],
        "params": [f.pointer for f in params] or ["/"],
    }
    found = connection.sql(query, params={"zone": zone, **pointers}).to_arrow_table()
    return {name: _plain(found[name]) for name in found.column_names}


def _plain(column: pa.ChunkedArray) -> Any:
    return column.to_numpy() if pa.types.is_integer(column.type) else column


def _canonical(connection: duckdb.DuckDBPyConnection, column: str) -> Callable[[Hashes], Hashes]:
    """Return what maps the hashes of texts to those of their canonical forms.

    Only distinct texts that could have another form are looked at.
    """
    reader = connection.sql(
        f"SELECT DISTINCT {column} FROM studied WHERE {_DEMAND} AND "
        f"regexp_matches({column}, '{_ODD}')"
    ).to_arrow_reader(_BATCH)
    pairs = [
        pa.table([batch.column(0), [canonical_text(t) for t in batch.column(0).to_pylist()]],
                 names=["raw", "folded"])
        for batch in reader
    ]  # fmt: skip
    if not pairs:
        return lambda hashes: hashes
    connection.register("refolded", pa.concat_tables(pairs))
    known = connection.sql(
        "SELECT hash(raw) AS raw, hash(folded) AS folded FROM refolded ORDER BY hash(raw)"
    ).to_arrow_table()
    raw, folded = known["raw"].to_numpy(), known["folded"].to_numpy()

    def mapped(hashes: Hashes) -> Hashes:
        place = np.minimum(np.searchsorted(raw, hashes), len(raw) - 1)
        return np.where(raw[place] == hashes, folded[place], hashes)

    return mapped


def _values(rows: Any, extra: Sequence[JsonField], params: Sequence[JsonField]) -> dict[str, Ints]:
    """Return for each field the numbers of its values; absence is -1."""
    found = {name: _numbers(rows[name], canonical_text) for name in fields.COLUMNS}
    for index, field in enumerate(params):
        name = field.path[0]
        column = pc.list_element(rows["params_values"], index)
        found[field.name] = _numbers(column, partial(fields.parameter, name))
    for index, field in enumerate(extra):
        found[field.name] = _numbers(pc.list_element(rows["extra_values"], index), _said)
    return found


def _said(value: str) -> str:
    """Return the canonical form of a value; an empty list says nothing."""
    return "" if value == "[]" else canonical_text(value)


def _numbers(column: pa.ChunkedArray, form: Callable[[str], str | None]) -> Ints:
    """Return a number for each canonical form; absent and empty are -1."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    forms: dict[str, int] = {}
    numbers = [
        forms.setdefault(said, len(forms)) if (said := form(value)) else -1
        for value in coded.dictionary.to_pylist()
    ]
    known = np.array([*numbers, -1], dtype=np.int64)
    places: Ints = known[np.asarray(coded.indices.fill_null(len(numbers)), np.int64)]
    return places


def _usable(
    values: Mapping[str, Ints], reals: Collection[str], without: Collection[str]
) -> tuple[dict[str, Ints], dict[str, str]]:
    kept, out = {}, {}
    for name, numbers in values.items():
        if reason := _unusable(name, numbers, name in reals, without):
            out[name] = reason
        else:
            kept[name] = dense(numbers)
    return kept, out


def _unusable(name: str, numbers: Ints, real: bool, without: Collection[str]) -> str | None:
    if name in without:
        return fields.WANTED
    if distinct(numbers) < 2:
        return fields.CONSTANT
    present = numbers[numbers >= 0]
    return fields.unusable(distinct(present), len(present), real)
