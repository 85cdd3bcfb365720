"""Pairs of BANKING77's questions, and which of them a similarity serves, rightly or wrongly."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.composed_pairs import KINDS, composed, reworded
from warmup_lib.guard import compatible
from warmup_lib.keys import canonical_text, embedding_text

OTHER = "other label"
SAME = "same label"
RANDOM = "random other label"
REWORDED = "reworded"
MISSES = (OTHER, *KINDS)

Encode = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class Cases:
    """Pairs of questions.

    Attributes:
        kinds: How each pair was made.
        texts: The question that is asked and the one that is stored.
        similarity: (n,) their cosine.
        passed: (n,) the guard lets them pass.
    """

    kinds: np.ndarray
    texts: list[tuple[str, str]]
    similarity: np.ndarray
    passed: np.ndarray

    @property
    def ought(self) -> np.ndarray:
        """Which of them may share an answer."""
        return np.isin(self.kinds, (SAME, REWORDED))

    @property
    def weight(self) -> float:
        """What a pair that ought to miss counts, for both sides to weigh the same."""
        return float(self.ought.sum() / max(1, (~self.ought).sum()))

    def hits(self, threshold: float, *, guarded: bool) -> np.ndarray:
        """Return which are served from a similarity on."""
        hit = self.similarity >= threshold
        return hit & self.passed if guarded else hit

    def counts(self, hit: np.ndarray) -> tuple[int, int]:
        """Return right and wrong hits."""
        return int((hit & self.ought).sum()), int((hit & ~self.ought).sum())

    def only(self, *kinds: str) -> Cases:
        """Return the pairs of some kinds."""
        ours = np.isin(self.kinds, kinds)
        texts = [self.texts[i] for i in np.flatnonzero(ours)]
        return Cases(self.kinds[ours], texts, self.similarity[ours], self.passed[ours])


@dataclass(frozen=True)
class Questions:
    """Distinct questions of one split, their labels and vectors."""

    texts: list[str]
    labels: np.ndarray
    vectors: np.ndarray


def questions(folder: Path, split: str, encode: Encode) -> Questions:
    """Read one split of BANKING77, with its capitals."""
    with (folder / "banking77" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        rows = {embedding_text(row["text"]): row for row in csv.DictReader(file)}
    texts = [canonical_text(row["text"]) for row in rows.values()]
    labels = np.array([row["category"] for row in rows.values()])
    return Questions(texts, labels, encode(list(rows)))


def cases(asked: Questions, stored: Questions, encode: Encode, kinds: Sequence[str]) -> Cases:
    """Return a pair of every kind for each question, in the order of the hash of their texts.

    A question that is stored as it is asks nothing.
    """
    known = set() if stored is asked else set(map(embedding_text, stored.texts))
    new = [i for i, text in enumerate(asked.texts) if embedding_text(text) not in known]
    order = sorted(new, key=lambda i: _drawn(asked.texts[i]))
    made: list[tuple[str, str, str]] = []
    for kind in kinds:
        if kind in (OTHER, SAME):
            found = _nearest(asked, stored, order, same=kind == SAME)
        elif kind == RANDOM:
            found = _random(asked, stored, order)
        elif kind == REWORDED:
            found = [reworded(asked.texts[i]) for i in order]
        else:
            found = [two for i in order if (two := composed(kind, asked.texts[i]))]
        made += [(kind, *pair) for pair in found]
    texts = [(a, b) for _, a, b in made]
    a_side, b_side = (encode([embedding_text(pair[side]) for pair in texts]) for side in (0, 1))
    return Cases(
        np.array([kind for kind, _, _ in made]),
        texts,
        np.sum(a_side * b_side, axis=1),
        np.array([compatible(a, b) for a, b in texts]),
    )


def drawn(whole: Cases, each: int) -> Cases:
    """Return the first pairs of each kind that ought to miss, and as many that ought to hit."""
    rows = [np.flatnonzero(whole.kinds == kind)[:each] for kind in MISSES]
    rows.append(np.flatnonzero(whole.kinds == SAME)[: sum(map(len, rows))])
    ours = np.concatenate(rows)
    texts = [whole.texts[i] for i in ours]
    return Cases(whole.kinds[ours], texts, whole.similarity[ours], whole.passed[ours])


def fixed(train: Cases, error: float) -> float:
    """Return the lowest threshold without a guard that has at most this error on some pairs.

    Pairs that ought to miss weigh as much as those that ought to hit. 1: no threshold has it.
    """
    order = np.argsort(-train.similarity)
    right = np.cumsum(train.ought[order])
    wrong = np.cumsum(~train.ought[order]) * train.weight
    keeps = np.flatnonzero(wrong <= error * (right + wrong))
    return float(train.similarity[order[keeps[-1]]]) if len(keeps) else 1.0


def share(right: float, wrong: float) -> float:
    """Return wrong hits / hits; 0 where nothing hits."""
    return wrong / max(1, right + wrong)


def _nearest(
    asked: Questions, stored: Questions, rows: Sequence[int], *, same: bool
) -> list[tuple[str, str]]:
    pairs = []
    for start in range(0, len(rows), 1024):
        part = list(rows[start : start + 1024])
        cosine = asked.vectors[part] @ stored.vectors.T
        alike = asked.labels[part][:, None] == stored.labels[None, :]
        cosine[alike != same] = -1
        if stored is asked:
            cosine[np.arange(len(part)), part] = -1
        nearest = cosine.argmax(axis=1)
        pairs += [(asked.texts[i], stored.texts[j]) for i, j in zip(part, nearest, strict=True)]
    return pairs


def _random(asked: Questions, stored: Questions, rows: Sequence[int]) -> list[tuple[str, str]]:
    """Pair each question with any stored one of another label."""
    pairs = []
    for i in rows:
        others = np.flatnonzero(stored.labels != asked.labels[i])
        pick = int(_drawn(f"other {asked.texts[i]}")[:12], 16) % len(others)
        pairs.append((asked.texts[i], stored.texts[others[pick]]))
    return pairs


def _drawn(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
