"""Pairs of questions that may share an answer or not: each question and its nearest neighbour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warmup_lib.embed.encoder import Floats
from warmup_lib.guard import tag
from warmup_lib.threshold.bounds import LEAST

EVERYONE = "*"
"""In the place of a tenant: whoever has no pairs of his own. No tenant can have this name."""

MOST = 20_000
"""Questions of one group that are compared with each other: those with the smallest digests."""

_ROWS = 1024


@dataclass(frozen=True)
class Question:
    """One question, and what answers it.

    Attributes:
        tenant: Whose it is.
        digest: Its identity as a text, 32 hex digits.
        text: As written.
        answers: What was given as its answer, or the label that stands for one.
        place: What a similar question must share besides the tenant, such as the context.
    """

    tenant: str
    digest: str
    text: str
    answers: frozenset[str]
    place: str = ""


@dataclass(frozen=True)
class Pair:
    """Two questions, one of which an answer cache would serve the answer of the other.

    Attributes:
        tenant: Whose they are.
        a_digest: Identity of one text.
        b_digest: Identity of the other.
        similarity: Their cosine.
        wrong: They have different answers.
    """

    tenant: str
    a_digest: str
    b_digest: str
    similarity: float
    wrong: bool


@dataclass(frozen=True)
class Found:
    """Pairs from one source.

    Attributes:
        pairs: Those that the guard lets pass.
        refused: Pairs that it refused, where they were given as pairs.
        refused_wrong: Of these, those that have different answers.
        texts: Digest -> text, for the user's own eyes.
        unusable: Tenant -> why nothing can be learned from its questions.
    """

    pairs: Sequence[Pair]
    refused: int = 0
    refused_wrong: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)


def nearest_pairs(questions: Iterable[Question], vectors: Mapping[str, Floats]) -> list[Pair]:
    """Pair each question with the one that a cache of all the others would serve it from.

    That is its nearest neighbour of the same tenant, place and guard signature. A pair that both
    of its questions lead to is one pair. Questions of one text are one, with all its answers.

    Args:
        questions: The questions.
        vectors: Vectors of length 1 by digest; a question without one has no pair.
    """
    groups: dict[Hashable, dict[str, Question]] = defaultdict(dict)
    for one in questions:
        if one.digest in vectors:
            group = groups[one.tenant, one.place, tag(one.text)]
            known = group.get(one.digest)
            answers = one.answers | (known.answers if known else frozenset())
            group[one.digest] = Question(one.tenant, one.digest, one.text, answers, one.place)
    pairs: list[Pair] = []
    for group in groups.values():
        if len(group) > 1:
            pairs += _of_group([group[d] for d in sorted(group)[:MOST]], vectors)
    return sorted(pairs, key=lambda pair: (pair.tenant, pair.a_digest, pair.b_digest))


def _of_group(group: Sequence[Question], vectors: Mapping[str, Floats]) -> list[Pair]:
    matrix = np.stack([vectors[one.digest] for one in group])
    found: dict[tuple[int, int], float] = {}
    for start in range(0, len(group), _ROWS):
        cosine = matrix[start : start + _ROWS] @ matrix.T
        rows = np.arange(len(cosine))
        cosine[rows, rows + start] = -1
        nearest = cosine.argmax(axis=1)
        for row, other in zip(rows.tolist(), nearest.tolist(), strict=True):
            if cosine[row, other] >= LEAST:
                pair = (min(row + start, other), max(row + start, other))
                found[pair] = float(cosine[row, other])
    return [
        Pair(
            group[a].tenant,
            group[a].digest,
            group[b].digest,
            similarity,
            group[a].answers.isdisjoint(group[b].answers),
        )
        for (a, b), similarity in found.items()
    ]
