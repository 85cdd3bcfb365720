"""Ways in which a text is known to be changed before a key is wrongly taken from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from warmup_lib.keys import canonical_text, embedding_text

_PUNCTUATION = re.compile(r"[^\w\s]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

FORMS: Mapping[str, Callable[[str], str]] = {
    "raw": lambda t: t,
    "canonical": canonical_text,
    "case folded": embedding_text,
    "lower": str.lower,
    "lower, stripped": lambda t: t.strip().lower(),
    "upper": str.upper,
    "case folded only": str.casefold,
    "stripped": str.strip,
    "one space": lambda t: " ".join(t.split()),
    "one space, lower": lambda t: " ".join(t.split()).lower(),
    "no space": lambda t: "".join(t.split()),
    "nfc": lambda t: unicodedata.normalize("NFC", t),
    "nfd": lambda t: unicodedata.normalize("NFD", t),
    "nfkc": lambda t: unicodedata.normalize("NFKC", t),
    "nfkd": lambda t: unicodedata.normalize("NFKD", t),
    "canonical, lower": lambda t: canonical_text(t).lower(),
    "no punctuation": lambda t: _PUNCTUATION.sub("", canonical_text(t)),
    "no punctuation, lower": lambda t: _PUNCTUATION.sub("", canonical_text(t)).lower(),
    "numbers as #": lambda t: _NUMBER.sub("#", canonical_text(t)),
    "numbers as <num>": lambda t: _NUMBER.sub("<num>", canonical_text(t)),
    "numbers as 0": lambda t: _NUMBER.sub("0", canonical_text(t)),
    "no numbers": lambda t: _NUMBER.sub("", canonical_text(t)),
    "ascii": lambda t: t.encode("ascii", "ignore").decode(),
}
"""Forms of a text that are not the one that its key is taken from."""

_EACH = 256
_ROUND = (32, 50)
_LONGEST = 16_384


def forms(text: str, right: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each form that differs from the right one."""
    seen = {right}
    for name, form in FORMS.items():
        made = form(text)
        if made not in seen:
            seen.add(made)
            yield name, made


class Cut(NamedTuple):
    """A part of a text that a key was taken from: its `first` or `last` characters or words."""

    end: str
    size: int
    unit: str

    def __str__(self) -> str:
        return f"{self.end} {self.size} {self.unit}"

    def of(self, text: str, words: Sequence[str]) -> str:
        """Return the part of a text, which is also given as its words."""
        last = self.end == "last"
        if self.unit == "characters":
            return text[-self.size :] if last else text[: self.size]
        return " ".join(words[-self.size :] if last else words[: self.size])


def cuts(text: str, likely: Iterable[Cut] = ()) -> Iterator[tuple[Cut, str]]:
    """Yield parts of a text: all short ones, and round longer ones.

    Args:
        text: The text.
        likely: Cuts to try first.
    """
    words = text.split(" ")
    whole = {"characters": len(text), "words": len(words)}
    for cut in chain(likely, _cuts(whole["characters"], whole["words"])):
        if cut.size < whole[cut.unit]:
            yield cut, cut.of(text, words)


def _cuts(length: int, words: int) -> Iterator[Cut]:
    for size in range(1, min(length, _LONGEST)):
        if size <= _EACH or any(size % r == 0 for r in _ROUND):
            yield Cut("last", size, "characters")
            yield Cut("first", size, "characters")
    for count in range(1, min(words, _LONGEST // 8)):
        yield Cut("last", count, "words")
        yield Cut("first", count, "words")
