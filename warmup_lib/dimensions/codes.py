"""Columns as numbers: equal values of a log's fields, and combinations of them, share a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Hashes = np.ndarray[Any, np.dtype[np.uint64]]

Numbers = np.ndarray[Any, np.dtype[Any]]
"""Numbers of any kind of which only equality counts."""

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def dense(values: Numbers) -> Ints:
    """Return for each value its number, from 0, in the order of the sorted distinct values."""
    inverse: Ints = np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    return inverse


def mixed(*columns: Numbers) -> Hashes:
    """Return one 64-bit number for each row, equal where the rows are equal in all columns.

    The chance that any two of a million different rows share one is below one in ten million.
    """
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        total = _stirred(total + _GOLDEN + _stirred(column.astype(np.uint64)))
    return total


def joined(columns: Iterable[Numbers], rows: int) -> Ints:
    """Return the numbers of combinations; without columns every row has number 0."""
    columns = list(columns)
    return dense(mixed(*columns)) if columns else np.zeros(rows, dtype=np.int64)


def distinct(values: Numbers) -> int:
    """Return how many distinct values there are."""
    ordered = np.sort(values)
    return int(len(ordered) > 0) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _stirred(x: Hashes) -> Hashes:
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    stirred: Hashes = x ^ (x >> np.uint64(31))
    return stirred
