"""The smallest set of fields that the answers depend on: grown, then shrunk (a Markov blanket).

Growing adds the field, or the two fields together, whose values fit the answers best among those
that pass the test given what was added before, so that two fields that matter only together are
found too. Shrinking drops what no longer matters given the rest, as a field does that only goes
along with one that matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from warmup_lib.dimensions.codes import Ints, joined
from warmup_lib.dimensions.dependence import Dependence, Strata

ALPHA = 0.01
"""Chance, at most, that a round of tests calls any field needed that is not."""

DOUBT = 0.05
"""A field that was not found to matter is told not to where at most this share of the merges over
it can be wrong, of those that can be seen to be right; else the log holds too few repeats, or too
few equal answers, to say so."""

_PLACES = 9
"""Fits are compared to this many decimals, so that the order of sums decides nothing."""


@dataclass(frozen=True)
class Evidence:
    """Requests whose own answer is known, of questions that came again.

    Attributes:
        question: (requests,) number of the question.
        answer: (requests,) number of the answer.
        values: By field: (requests,) number of the value.
    """

    question: Ints
    answer: Ints
    values: Mapping[str, Ints]

    def given(self, held: Iterable[str]) -> Strata:
        """Return the answers, held apart by question and by some fields."""
        columns = [self.question, *(self.values[name] for name in held)]
        return Strata(joined(columns, len(self.question)), self.answer)

    def together(self, names: Iterable[str]) -> Ints:
        """Return the numbers of the combined values of fields."""
        return joined([self.values[name] for name in names], len(self.question))


@dataclass(frozen=True)
class Selection:
    """The fields that matter.

    Attributes:
        needed: Their names, in the order of the candidates.
        given_rest: Of every field: what it adds to the needed ones (a needed one: to the others).
        alone: Of every field: what it tells by itself.
        tests: Tests of the largest round, by which each p-value is multiplied.
    """

    needed: tuple[str, ...]
    given_rest: Mapping[str, Dependence]
    alone: Mapping[str, Dependence]
    tests: int

    def p(self, found: Dependence) -> float:
        """Return a p-value corrected for the number of tests (Bonferroni)."""
        return min(1.0, found.p * self.tests)


def select(evidence: Evidence, of: int) -> Selection:
    """Return the smallest set of fields that explains the answers.

    Args:
        evidence: The requests.
        of: Fields that they were chosen from, each of which could have been found by chance.
    """
    names = list(evidence.values)
    tests = max(1, of * (of + 1) // 2)
    needed = _shrunk(evidence, _grown(evidence, names, tests), tests)
    ordered = tuple(name for name in names if name in needed)
    return Selection(
        needed=ordered,
        given_rest={n: _test(evidence, n, [o for o in ordered if o != n]) for n in names},
        alone={name: _test(evidence, name, ()) for name in names},
        tests=tests,
    )


def _grown(evidence: Evidence, names: Sequence[str], tests: int) -> list[str]:
    needed: list[str] = []
    while True:
        strata = evidence.given(needed)
        left = [name for name in names if name not in needed]
        sets = [*combinations(left, 1), *combinations(left, 2)]
        found = {some: strata.test(evidence.together(some)) for some in sets}
        passed = [some for some in sets if found[some].p * tests <= ALPHA]
        # Of equal fits the fewest fields go first, then the first ones: sorting is stable.
        passed.sort(key=lambda some: -round(found[some].fit, _PLACES))
        added = next((some for some in passed if _each_needed(evidence, some, needed, tests)), ())
        if not added:
            return needed
        needed += added


def _each_needed(
    evidence: Evidence, some: Sequence[str], needed: Sequence[str], tests: int
) -> bool:
    """Return whether each of two fields matters given the other: one that does would do alone."""
    if len(some) == 1:
        return True
    pairs = (some, some[::-1])
    return all(_test(evidence, a, [*needed, b]).p * tests <= ALPHA for a, b in pairs)


def _shrunk(evidence: Evidence, needed: list[str], tests: int) -> list[str]:
    """Drop, the least fitting first, what adds nothing to the rest; in doubt it stays."""
    while True:
        without = {n: _test(evidence, n, [o for o in needed if o != n]) for n in needed}
        idle = [n for n, f in without.items() if f.p * tests > ALPHA and f.effect <= DOUBT]
        if not idle:
            return needed
        least = min(idle, key=lambda n: without[n].fit)
        needed = [n for n in needed if n != least]


def _test(evidence: Evidence, name: str, held: Sequence[str]) -> Dependence:
    return evidence.given(held).test(evidence.values[name])
