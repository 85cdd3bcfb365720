"""The lake: partitions, manifests and SQL views over Parquet in a folder or object store.

Writing a partition is three steps: part files go to `_staging/`, are moved in under names made of
their content, and the manifest that lists them is written last. Readers open only what a manifest
lists, so a writer that is killed leaves the old partition whole; what it left is swept by the next
writer of that partition. Names that begin with `_` are skipped by every SQL engine.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from warmup_lib.errors import ConfigError, InputDataError
from warmup_lib.tables import SCHEMA_VERSION, TABLES, Table

_MANIFEST = "_manifest.json"
_STAGING = "_staging"
_PINNED = "_lake.json"
_LATEST = "_latest_plan"
_ROW_GROUP = 64 * 1024

Partition = Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """One Parquet file of a partition."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """What a partition holds, and the facts its writer left about it."""

    schema_version: int
    parts: tuple[Part, ...]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows in all parts."""
        return sum(p.rows for p in self.parts)

    def content_digest(self) -> str:
        """Return 16 hex digits that change with the rows (part names are made of content)."""
        names = ",".join(sorted(p.name for p in self.parts))
        return hashlib.sha256(names.encode()).hexdigest()[:16]


class Lake:
    """A folder or object-store prefix that holds the tables.

    Args:
        uri: `file://...`, `s3://...` or any URL that fsspec knows; a plain path is a local folder.
        storage_options: Passed to fsspec (credentials, endpoint).

    Attributes:
        fs: The file system, for what is kept beside the tables (locks).
        root: The lake's folder on it.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None = None) -> None:
        try:
            fs, root = fsspec.core.url_to_fs(uri, **(storage_options or {}))
        except (ValueError, ImportError) as error:
            raise ConfigError(f"the lake '{uri}' can't be opened: {error}") from None
        if set("*?[]") & set(str(root)):
            raise ConfigError(f"the lake '{uri}' can't have *, ?, [ or ] in its path")
        self.uri = uri
        self.fs: Any = fs
        self.root: str = str(root).rstrip("/")

    # -- partitions ------------------------------------------------------------------------------

    def path(self, table: str, partition: Partition | None = None) -> str:
        """Return the folder of a table or of one of its partitions."""
        declared = self._table(table)
        parts = [self.root, table]
        if partition is not None:
            if set(partition) != set(declared.partition):
                raise InputDataError(f"table {table} is partitioned by {declared.partition}")
            parts += [f"{key}={quote(partition[key], safe='')}" for key in declared.partition]
        return posixpath.join(*parts)

    def partitions(self, table: str) -> list[dict[str, str]]:
        """Return the partitions that have a manifest, sorted."""
        keys = self._table(table).partition
        base = self.path(table)
        pattern = posixpath.join(base, *[f"{key}=*" for key in keys], _MANIFEST)
        found = []
        for file in self.fs.glob(pattern):
            folders = posixpath.dirname(str(file)).split("/")[-len(keys) :]
            found.append(
                {key: unquote(f.split("=", 1)[1]) for key, f in zip(keys, folders, strict=True)}
            )
        return sorted(found, key=lambda p: [p[key] for key in keys])

    def days(self, table: str) -> list[str]:
        """Return the days a table has, sorted, as ISO dates."""
        return sorted({p["day"] for p in self.partitions(table)})

    def manifest(self, table: str, partition: Partition) -> Manifest | None:
        """Return a partition's manifest, or None where there is no such partition.

        Raises:
            InputDataError: The partition was written under another schema version.
        """
        file = posixpath.join(self.path(table, partition), _MANIFEST)
        try:
            raw = json.loads(self.fs.cat_file(file))
        except FileNotFoundError:
            return None
        if raw["schema_version"] != SCHEMA_VERSION:
            raise InputDataError(
                f"{table} {dict(partition)} has schema version {raw['schema_version']}, this "
                f"release reads {SCHEMA_VERSION}: rebuild the partition"
            )
        return Manifest(
            raw["schema_version"], tuple(Part(**p) for p in raw["parts"]), raw.get("meta", {})
        )

    # -- writing ---------------------------------------------------------------------------------

    def replace(
        self,
        table: str,
        partition: Partition,
        rows: pa.Table,
        meta: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """Replace one partition whole. Rows are sorted by the table's order.

        Args:
            table: The table's name.
            partition: One value for each partition key.
            rows: Columns as declared, in any order; null where a column is absent is not allowed.
            meta: JSON facts to keep in the manifest.
        """
        parts = (self._stage(table, partition, rows),) if rows.num_rows else ()
        return self._publish(table, partition, parts, dict(meta or {}))

    def append(
        self,
        table: str,
        partition: Partition,
        rows: pa.Table,
        meta: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """Add one part to a partition and merge `meta` into its manifest.

        A part with the same content is already there under the same name, so that appending the
        same rows twice adds nothing.
        """
        old = self.manifest(table, partition) or Manifest(SCHEMA_VERSION, ())
        parts = {p.name: p for p in old.parts}
        if rows.num_rows:
            new = self._stage(table, partition, rows)
            parts[new.name] = new
        ordered = tuple(sorted(parts.values(), key=lambda p: p.name))
        return self._publish(table, partition, ordered, {**old.meta, **(meta or {})})

    def annotate(self, table: str, partition: Partition, meta: Mapping[str, Any]) -> Manifest:
        """Merge facts into a partition's manifest without touching its rows."""
        return self.append(table, partition, self._table(table).empty(), meta)

    def drop(self, table: str, partition: Partition) -> int:
        """Remove a partition; return the rows it had."""
        old = self.manifest(table, partition)
        if old is None:
            return 0
        self.fs.rm_file(posixpath.join(self.path(table, partition), _MANIFEST))
        self.fs.rm(self.path(table, partition), recursive=True)
        return old.rows

    def _stage(self, table: str, partition: Partition, rows: pa.Table) -> Part:
        declared = self._table(table)
        ordered = rows.select(declared.schema.names).cast(declared.schema)
        ordered = ordered.sort_by([(name, "ascending") for name in declared.order])
        sink = pa.BufferOutputStream()
        pq.write_table(
            ordered.combine_chunks(), sink, compression="zstd", row_group_size=_ROW_GROUP
        )
        data = sink.getvalue().to_pybytes()
        name = f"part-{hashlib.sha256(data).hexdigest()[:24]}.parquet"
        staged = posixpath.join(self.root, _STAGING, f"{uuid.uuid4().hex}.parquet")
        self.fs.makedirs(posixpath.dirname(staged), exist_ok=True)
        self.fs.pipe_file(staged, data)
        folder = self.path(table, partition)
        self.fs.makedirs(folder, exist_ok=True)
        self.fs.mv(staged, posixpath.join(folder, name))
        return Part(name, ordered.num_rows, len(data))

    def _publish(
        self, table: str, partition: Partition, parts: tuple[Part, ...], meta: dict[str, Any]
    ) -> Manifest:
        manifest = Manifest(SCHEMA_VERSION, parts, meta)
        body = {
            "schema_version": manifest.schema_version,
            "parts": [vars(p) for p in parts],
            "meta": meta,
        }
        folder = self.path(table, partition)
        self.fs.makedirs(folder, exist_ok=True)
        staged = posixpath.join(self.root, _STAGING, f"{uuid.uuid4().hex}.json")
        self.fs.makedirs(posixpath.dirname(staged), exist_ok=True)
        self.fs.pipe_file(staged, json.dumps(body, sort_keys=True).encode())
        self.fs.mv(staged, posixpath.join(folder, _MANIFEST))
        listed = {p.name for p in parts} | {_MANIFEST}
        for file in self.fs.ls(folder, detail=False):
            if posixpath.basename(str(file)) not in listed:
                self.fs.rm_file(str(file))
        return manifest

    def pin(self, facts: Mapping[str, str], *, record: bool) -> None:
        """Check what all rows of the lake depend on, such as the secret of their digests.

        Args:
            facts: Name and value of each.
            record: Keep them where the lake has none yet.

        Raises:
            ConfigError: The lake was filled under other values.
        """
        file = posixpath.join(self.root, _PINNED)
        try:
            known = json.loads(self.fs.cat_file(file))
        except FileNotFoundError:
            if record:
                self.fs.makedirs(self.root, exist_ok=True)
                self.fs.pipe_file(file, json.dumps(dict(facts), sort_keys=True).encode())
            return
        for name, value in facts.items():
            if known.get(name, value) != value:
                raise ConfigError(
                    f"this lake was filled under {name} {known[name]}, the settings give {value}: "
                    "go back to that, or ingest the logs into a new lake"
                )

    def name_latest(self, plan_id: str) -> None:
        """Remember the plan that planning answered with, made then or standing still."""
        self.fs.makedirs(self.root, exist_ok=True)
        self.fs.pipe_file(posixpath.join(self.root, _LATEST), plan_id.encode())

    def latest_plan(self) -> str | None:
        """Return the plan that planning answered with last; None: there was none."""
        try:
            found: bytes = self.fs.cat_file(posixpath.join(self.root, _LATEST))
        except FileNotFoundError:
            return None
        return found.decode()

    # -- reading ---------------------------------------------------------------------------------

    def files(self, table: str, partition: Partition) -> list[str]:
        """Return the paths of the listed part files of one partition."""
        manifest = self.manifest(table, partition)
        if manifest is None:
            return []
        folder = self.path(table, partition)
        return [posixpath.join(folder, p.name) for p in manifest.parts]

    def read(
        self, table: str, partition: Partition, columns: Iterable[str] | None = None
    ) -> pa.Table:
        """Return the rows of one partition; no rows where there is none."""
        declared = self._table(table)
        names = list(columns) if columns is not None else declared.schema.names
        tables = list(self._parts(table, [partition], names))
        if not tables:
            return declared.schema.empty_table().select(names)
        return pa.concat_tables(tables)

    def read_days(
        self, table: str, days: Iterable[str], columns: Iterable[str] | None = None
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield (day, rows) of a table that is partitioned by day only, one day at a time."""
        names = list(columns) if columns is not None else None
        for day in days:
            yield day, self.read(table, {"day": day}, names)

    def _parts(
        self, table: str, partitions: Iterable[Partition], columns: list[str]
    ) -> Iterator[pa.Table]:
        for partition in partitions:
            for file in self.files(table, partition):
                with self.fs.open(file, "rb") as source:
                    yield pq.read_table(source, columns=columns, partitioning=None)

    def sql(self) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection with one view a table, over the listed files only.

        A table without rows is an empty view with the declared columns, so that reports run on a
        new lake too. Partition columns are text, but `day`, which is a date.
        """
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        if "file" not in self._protocols():
            connection.register_filesystem(self.fs)
        for name in TABLES:
            connection.execute(self._view(name))
        return connection

    def _view(self, name: str) -> str:
        declared = self._table(name)
        files = [f for p in self.partitions(name) for f in self.files(name, p)]
        if not files:
            columns = ", ".join(
                [f"CAST(NULL AS {_duck_type(f.type)}) AS {f.name}" for f in declared.schema]
                + [f"CAST(NULL AS {_partition_type(key)}) AS {key}" for key in declared.partition]
            )
            return f"CREATE VIEW {name} AS SELECT {columns} WHERE false"
        prefix = "" if "file" in self._protocols() else f"{self._protocols()[0]}://"
        listed = ", ".join("'" + (prefix + f).replace("'", "''") + "'" for f in sorted(files))
        types = ", ".join(f"'{key}': {_partition_type(key)}" for key in declared.partition)
        return (
            f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], "
            f"hive_partitioning = true, hive_types = {{{types}}})"
        )

    # -- helpers ---------------------------------------------------------------------------------

    def _protocols(self) -> tuple[str, ...]:
        protocol = self.fs.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    @staticmethod
    def _table(name: str) -> Table:
        if name not in TABLES:
            raise InputDataError(f"no such table: {name}; there are {', '.join(TABLES)}")
        return TABLES[name]


def _partition_type(key: str) -> str:
    return "DATE" if key == "day" else "VARCHAR"


def _duck_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_duck_type(kind.value_type)}[]"
    names = {
        pa.string(): "VARCHAR",
        pa.int64(): "BIGINT",
        pa.float64(): "DOUBLE",
        pa.float32(): "FLOAT",
        pa.bool_(): "BOOLEAN",
    }
    return names.get(kind, "TIMESTAMPTZ")
