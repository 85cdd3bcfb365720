"""Writes questions from templates: `[this|that]` chooses a wording, `{slot}` fills in a value.

A slot's value may be a mapping: its `text` is the value, its `pages` are the documentation pages it
is about, and its other keys are slots that go with it (a snippet knows its programming language).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samples.pool import pick

if TYPE_CHECKING:
    import numpy as np

_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_MARK = re.compile(r"<<(\w+)>>")

COMMON_FIRST = 1.6
"""Skew towards the first wording and the first values: some are simply more usual."""


@dataclass
class Filling:
    """The slot values of one question, reused by its answer and its follow-up turns."""

    slots: dict[str, list[Any]]
    plain: dict[str, str]
    names: dict[str, list[str]]
    rng: np.random.Generator
    values: dict[str, str] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)

    def ask(self, template: str) -> str:
        """Return a question, choosing a wording and a value for each new slot."""
        wording = _CHOICE.sub(
            lambda m: pick(m.group(1).split("|"), self.rng, COMMON_FIRST), template
        )
        # slots that go with another (the language of a snippet) need that one chosen first
        for name in sorted(_SLOT.findall(wording), key=lambda n: n not in self.slots):
            self._choose(name)
        return _SLOT.sub(self._value, wording)

    def answer(self, template: str) -> str:
        """Return an answer: the question's values, and plain words for what it did not name."""
        return _SLOT.sub(lambda m: self.values.get(m.group(1), self._plain(m.group(1))), template)

    def _choose(self, name: str) -> None:
        if name in self.values or name not in self.slots:
            return
        value = pick(self.slots[name], self.rng, COMMON_FIRST)
        if isinstance(value, dict):
            self.pages = list(value.get("pages", ()))
            self.values.update({k: v for k, v in value.items() if k not in ("text", "pages")})
            value = self._named(value["text"])
        self.values[name] = str(value)

    def _named(self, text: str) -> str:
        chosen: dict[str, str] = {}

        def name(match: re.Match[str]) -> str:
            key = match.group(1)
            if key not in chosen:
                chosen[key] = pick(self.names[key], self.rng, COMMON_FIRST)
            return chosen[key]

        return _MARK.sub(name, text)

    def _value(self, match: re.Match[str]) -> str:
        return self.values[match.group(1)]

    def _plain(self, name: str) -> str:
        return self.plain.get(name) or str(self.slots[name][0])
