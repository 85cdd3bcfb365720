"""The study of a log: what each way to build keys comes to, and which fields answers depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warmup_lib.dimensions.codes import Hashes, Numbers, distinct, joined, mixed
from warmup_lib.dimensions.evidence import evidence, narrowed
from warmup_lib.dimensions.fields import AGE, IN_EVERY_KEY
from warmup_lib.dimensions.merging import Merging, count_keys, merging
from warmup_lib.dimensions.reading import Log
from warmup_lib.dimensions.selection import DOUBT, Evidence, Selection, select

NEEDED = "needed"
AGES = "age"
FOLLOWS = "follows"
NOT_NEEDED = "not_needed"
UNDECIDED = "undecided"

ENOUGH = 30
"""Judged hits without which a rate is not taken as known."""


@dataclass(frozen=True)
class Step:
    """One row of the picture of growth: the keys once so many fields are in them.

    Attributes:
        added: The field that this step adds; empty in the first row.
        possible: Questions times the values of all fields so far.
        merging: What the keys come to.
    """

    added: str
    possible: int
    merging: Merging


class Study:
    """What a log says about the dimensions of a key.

    Args:
        log: The log.
    """

    def __init__(self, log: Log) -> None:
        candidates = len(log.values)
        self.log = log = narrowed(log)
        self.evidence: Evidence = evidence(log)
        self.selection: Selection = select(
            self.evidence, candidates - len(log.values) + len(self.evidence.values)
        )
        self.suggested = tuple(n for n in self.selection.needed if n != AGE)
        self.fields = tuple(n for n in log.values if n != AGE)
        self._questions = distinct(log.question)

    def key(self, names: Sequence[str]) -> Hashes:
        """Return the keys of requests where these fields are in them."""
        return mixed(self.log.question, *(self.log.values[name] for name in names))

    def beyond_contract(self) -> tuple[str, ...]:
        """Return the suggested fields that are in a key only where the settings say so."""
        return tuple(
            n for n in self.suggested if n not in IN_EVERY_KEY and not n.startswith("params.")
        )

    @cached_property
    def schemes(self) -> dict[str, Merging]:
        """What full concatenation and several allow-lists come to."""
        extra = [self.log.values[name] for name in self.beyond_contract()]
        keys: Mapping[str, Numbers] = {
            "full": self.key(self.fields),
            "contract": self.log.contract,
            "contract_and_suggested": mixed(self.log.contract, *extra),
            "suggested": self.key(self.suggested),
            "question_only": self.log.question,
        }
        return {name: merging(self.log, key) for name, key in keys.items()}

    @cached_property
    def noise(self) -> Merging:
        """Requests that agree in all fields and come on one day: their disagreement is noise."""
        return merging(self.log, self.key(tuple(self.log.values)))

    @cached_property
    def noise_floor(self) -> float | None:
        """Disagreement where everything agrees; None: too few requests do."""
        return self.noise.wrong_rate if self.noise.judged >= ENOUGH else None

    @cached_property
    def keys_added(self) -> dict[str, int]:
        """By field: keys that it adds to those of the suggested ones (a needed one: to theirs)."""
        return {
            name: count_keys(self.log, self.key((*self._others(name), name)))
            - count_keys(self.log, self.key(self._others(name)))
            for name in self.fields
        }

    @cached_property
    def keys_saved(self) -> dict[str, int]:
        """By field: keys fewer once it alone is taken out of full concatenation."""
        full = self.schemes["full"].keys
        return {
            name: full - count_keys(self.log, self.key([o for o in self.fields if o != name]))
            for name in self.fields
        }

    @cached_property
    def costs_most(self) -> str | None:
        """The field that adds most keys without being needed; None: none adds any."""
        idle = [n for n in self.fields if n not in self.suggested and self.keys_added[n] > 0]
        return max(idle, key=lambda n: self.keys_added[n], default=None)

    @cached_property
    def growth(self) -> list[Step]:
        """Keys by the number of fields in them: the needed ones, then the cheapest first.

        A field that splits none of the suggested keys is in no step.
        """
        rest = [n for n in self.fields if n not in self.suggested and self.keys_added[n]]
        rest.sort(key=lambda n: (self.keys_added[n], n))
        steps, possible, key = [], self._questions, self.key(())
        for name in ("", *self.suggested, *rest):
            if name:
                possible *= len(np.unique(self.log.values[name]))
                key = mixed(key, self.log.values[name])
            steps.append(Step(name, possible, merging(self.log, key)))
        return steps

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """By field: what the log says about it."""
        return {name: self._verdict(name) for name in self.log.values}

    @cached_property
    def same_as(self) -> dict[str, str]:
        """By field that is not needed: the needed one that it can't be told from in this log."""
        found = {}
        for needed in self.suggested:
            others = self._others(needed)
            keys = distinct(self.key((*others, needed)))
            for name in self.fields:
                if name in self.suggested or name in found or name not in self.evidence.values:
                    continue
                both = distinct(self.key((*others, needed, name)))
                if keys == both == distinct(self.key((*others, name))):
                    found[name] = needed
        return found

    def _others(self, name: str) -> tuple[str, ...]:
        return tuple(n for n in self.suggested if n != name)

    def _verdict(self, name: str) -> str:
        if name in self.selection.needed:
            return AGES if name == AGE else NEEDED
        if name not in self.evidence.values:
            splits = distinct(self.key((name,))) > self._questions
            return UNDECIDED if splits else FOLLOWS
        found = self.selection.given_rest[name]
        if not found.comparisons and self._goes_along(name):
            return FOLLOWS
        return NOT_NEEDED if found.at_most <= DOUBT * found.agreement else UNDECIDED

    def _goes_along(self, name: str) -> bool:
        """Return whether the needed fields decide a field, wherever the log lets it be seen."""
        given = joined([self.key(self.selection.needed)], self.log.requests)
        return distinct(mixed(given, self.log.values[name])) == distinct(given)
