"""What is compared: requests of questions that came again, with answers of their own, in fields."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warmup_lib.dimensions import fields
from warmup_lib.dimensions.codes import Ints, dense, mixed
from warmup_lib.dimensions.reading import Log
from warmup_lib.dimensions.selection import ALPHA, Evidence

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


def narrowed(log: Log) -> Log:
    """Return a log with the fields that are studied together: at most `fields.MOST`.

    Those go first that are seen to matter by themselves, then those of which the log can tell the
    most, as it can of a few values that many requests share.
    """
    if len(log.values) <= fields.MOST:
        return log
    found = evidence(log)
    strata = found.given(())
    alone = {name: strata.test(value) for name, value in found.values.items()}

    def rank(name: str) -> tuple[int, float, str]:
        if name not in alone:
            return 2, 0.0, name
        one = alone[name]
        return (0, -one.fit, name) if one.p * len(alone) <= ALPHA else (1, -one.power, name)

    kept = set(sorted(log.values, key=rank)[: fields.MOST])
    return replace(
        log,
        values={name: value for name, value in log.values.items() if name in kept},
        left_out={**log.left_out, **dict.fromkeys(log.values.keys() - kept, fields.TOO_MANY)},
    )


def _splits(question: Ints, value: Ints) -> bool:
    """Return whether some question was asked with several values."""
    pairs = len(np.unique(mixed(question, value)))
    return pairs > len(np.unique(question))
