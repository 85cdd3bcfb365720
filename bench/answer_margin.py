"""Measures what a margin would bring: no answer where one to another question is nearly as near.

That is the best lever there is where all answers are stored, and how much it holds back depends on
which ones are. docs/adr/0016-threshold.md says why nothing uses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from bench.question_pairs import Questions, share
from warmup_lib.guard import signature

RULES = ((0.945, 0.0), (0.92, 0.0), (0.92, 0.1), (0.84, 0.0), (0.84, 0.1))
"""Cosine and margin."""


def rows(stored: Questions) -> Iterator[list[object]]:
    """Yield rows of a table: each rule in a cache of all answers, then in one of half of them.

    A label stands for an answer. Each question asks a cache of all the others.
    """
    near = _nearest_by_label(stored)
    labels, own = np.unique(stored.labels, return_inverse=True)
    half = np.array([int(hashlib.sha256(n.encode()).hexdigest()[:2], 16) % 2 for n in labels]) == 0
    partly = np.where(half[None, :], -1, near)
    for threshold, margin in RULES:
        row: list[object] = [f"{threshold:.3f}", f"{margin:.2f}"]
        for held in (near, partly):
            right, wrong = _counts(held, own, threshold, margin)
            row += [right, wrong, f"{100 * share(right, wrong):.1f}"]
        yield row


def _counts(near: np.ndarray, own: np.ndarray, threshold: float, margin: float) -> tuple[int, int]:
    two = np.partition(near, -2, axis=1)[:, -2:]
    hit = (two[:, 1] >= threshold) & (two[:, 1] - two[:, 0] >= margin)
    right = near.argmax(axis=1) == own
    return int((hit & right).sum()), int((hit & ~right).sum())


def _nearest_by_label(stored: Questions) -> np.ndarray:
    """Return (questions, labels) the cosine of the nearest other one that the guard lets pass."""
    _, own = np.unique(stored.labels, return_inverse=True)
    tags = np.unique([signature(text) for text in stored.texts], return_inverse=True)[1]
    order = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[order], np.arange(own.max() + 1))
    found = []
    for start in range(0, len(own), 1024):
        part = np.arange(start, min(start + 1024, len(own)))
        cosine = stored.vectors[part] @ stored.vectors.T
        cosine[np.arange(len(part)), part] = -1
        cosine[tags[part][:, None] != tags[None, :]] = -1
        found.append(np.maximum.reduceat(cosine[:, order], starts, axis=1))
    return np.concatenate(found)
