"""The lake's tables: every column's name, type, unit and meaning, declared once.

A change of meaning or type raises `SCHEMA_VERSION`; readers refuse a partition of another version.
Partition columns live in the folder names (`day=2026-03-14`) and not in the files.
"""

from __future__ import annotations

from warmup_lib.tables.columns import (
    BOOL,
    INT,
    MICRO,
    REAL,
    STR,
    STRS,
    TIME,
    VECTOR,
    Column,
    Table,
)
from warmup_lib.tables.demand import (
    CHUNKS,
    CLUSTERS,
    HEADS,
    HEAT,
    HOURS,
    LISTED,
    MEMBERS,
    PROMPTS,
    QUARANTINE,
    REQUESTS,
    VECTORS,
)
from warmup_lib.tables.plans import CAUSES, HITS, LEFT_OUT, PLAN, RECEIPTS, RESIDENCY
from warmup_lib.tables.thresholds import THRESHOLD_PAIRS, THRESHOLDS

__all__ = [
    "BOOL",
    "CAUSES",
    "CHUNKS",
    "CLUSTERS",
    "HEADS",
    "HEAT",
    "HITS",
    "HOURS",
    "INT",
    "LEFT_OUT",
    "LISTED",
    "MEMBERS",
    "MICRO",
    "PLAN",
    "PROMPTS",
    "QUARANTINE",
    "REAL",
    "RECEIPTS",
    "REQUESTS",
    "RESIDENCY",
    "SCHEMA_VERSION",
    "STR",
    "STRS",
    "TABLES",
    "THRESHOLDS",
    "THRESHOLD_PAIRS",
    "TIME",
    "VECTOR",
    "VECTORS",
    "Column",
    "Table",
    "reason_word",
]

SCHEMA_VERSION = 4

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        REQUESTS,
        QUARANTINE,
        PROMPTS,
        HEADS,
        CHUNKS,
        LISTED,
        VECTORS,
        CLUSTERS,
        MEMBERS,
        HEAT,
        HOURS,
        THRESHOLDS,
        THRESHOLD_PAIRS,
        PLAN,
        LEFT_OUT,
        RECEIPTS,
        RESIDENCY,
        HITS,
        CAUSES,
    )
}


def reason_word(reason: str) -> str:
    """Return the word from the closed list, without the detail that some have after it."""
    return reason.partition(":")[0]
