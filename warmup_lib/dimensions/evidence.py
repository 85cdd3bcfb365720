"""Which requests are compared: those of questions that came again, with answers of their own."""

from __future__ import annotations

import numpy as np

from warmup_lib.dimensions.codes import Ints, dense, mixed
from warmup_lib.dimensions.reading import Log
from warmup_lib.dimensions.selection import Evidence

OF_A_QUESTION = 64
"""Requests of one question that are compared, so that a hot one does not decide alone."""

MOST = 200_000
"""Requests that are compared in all."""


def evidence(log: Log) -> Evidence:
    """Return the requests to compare, drawn by numbers that are the same on every run."""
    rows = np.flatnonzero(log.answer >= 0)
    question = dense(log.question[rows])
    # In order of a scrambled number of the question, then of the request.
    order = np.lexsort((mixed(rows), question, mixed(question)))
    question, rows = question[order], rows[order]
    begins = np.flatnonzero(np.diff(question, prepend=-1))
    sizes = np.diff(begins, append=len(question))
    rank = np.arange(len(question)) - np.repeat(begins, sizes)
    rows = rows[(rank < OF_A_QUESTION) & (np.repeat(sizes, sizes) > 1)][:MOST]
    question = dense(log.question[rows])
    values = {name: dense(numbers[rows]) for name, numbers in log.values.items()}
    return Evidence(
        question=question,
        answer=dense(log.answer[rows]),
        values={name: v for name, v in values.items() if _splits(question, v)},
    )


def _splits(question: Ints, value: Ints) -> bool:
    """Return whether some question was asked with several values."""
    pairs = len(np.unique(mixed(question, value)))
    return pairs > len(np.unique(question))
