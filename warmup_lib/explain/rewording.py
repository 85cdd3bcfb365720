"""Ways in which a text is known to be changed before a key is wrongly taken from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

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


def cuts(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text's first and last characters and words: all short cuts, and round longer ones."""
    length = min(len(text), _LONGEST)
    sizes = [n for n in range(1, length) if n <= _EACH or any(n % r == 0 for r in _ROUND)]
    for size in sizes:
        yield f"last {size} characters", text[-size:]
        yield f"first {size} characters", text[:size]
    words = text.split(" ")
    for count in range(1, min(len(words), _LONGEST // 8)):
        yield f"last {count} words", " ".join(words[-count:])
        yield f"first {count} words", " ".join(words[:count])
