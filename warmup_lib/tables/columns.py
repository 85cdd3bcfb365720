"""What tables are declared with: the types of columns, and columns that several tables have."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

STR = pa.string()
INT = pa.int64()
REAL = pa.float64()
BOOL = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
STRS = pa.list_(pa.string())
VECTOR = pa.list_(pa.float32())

MICRO = 1_000_000
"""Heat is stored in millionths of a request, so that sums split over workers stay exact."""


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means, and the unit of its values."""

    name: str
    type: pa.DataType
    description: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """One table: its columns, its partition keys, and the order of its rows."""

    name: str
    description: str
    partition: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the part files."""
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    def empty(self) -> pa.Table:
        """Return a table of no rows."""
        return self.schema.empty_table()


TENANT = Column("tenant", STR, "who the request belongs to")
MODEL = (
    Column("model", STR, "model name as requested"),
    Column("model_revision", STR, "model revision, null when the log has none"),
    Column("adapter", STR, "LoRA adapter, null for the base model"),
)
PROMPT_IDS = (
    Column("text_digest", STR, "identity of the user text for embeddings (case folded)", "hex"),
    Column("context_digest", STR, "identity of all but the last user text", "hex"),
    Column("response_digest", STR, "identity of the whole request, as an answer's key", "hex"),
    Column("head_digest", STR, "identity of system prompt + tools, as a KV prefix", "hex"),
)
