"""Canonical text: one form for all texts that differ in nothing that can change an answer."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_FENCES = re.compile(r"([`\u1fef\uff40]{3,})|^[^\S\n]*([~\uff5e]{3,})", re.MULTILINE)
"""Code fences, in all characters that NFKC makes one of. Three tildes within a line are no fence:
people write them at the end of a sentence."""

_SPACES = re.compile(r"[^\S\n]{2,}|[^\S\n ]")  # a single space is left alone: most are
_BLANK_LINES = re.compile(r"\s*\n\s*")

_REMEMBERED = 64 * 1024
"""Longest text remembered, in characters: system prompts repeat, and are folded once."""


def canonical_text(text: str) -> str:
    """Return `text` in NFKC with newlines and white space folded outside fenced code.

    Letter case is kept: two prompts that differ in case may have different answers.
    """
    return _folded(text) if len(text) <= _REMEMBERED else _fold(text)


def embedding_text(text: str) -> str:
    """Return what the encoder sees: the canonical text, case folded."""
    folded = canonical_text(text).casefold()
    # Folding case takes some letters apart, which their capitals are not: they are joined again.
    return folded if unicodedata.is_normalized("NFKC", folded) else canonical_text(folded)


def _fold(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    pieces: list[str] = []
    at, fence = 0, ""
    for run in _FENCES.finditer(text):
        group = run.lastindex or 1
        mark = unicodedata.normalize("NFKC", run[group])
        if not mark.startswith(fence):
            continue  # within code that a longer fence, or one of the other kind, will close
        pieces += [_piece(text[at : run.start(group)], fence), mark]
        at, fence = run.end(), "" if fence else mark
    return "".join([*pieces, _piece(text[at:], fence)]).strip()


def _piece(text: str, fence: str) -> str:
    """Return what is between two fences: code as it is, all else folded."""
    if fence:
        return text
    return _BLANK_LINES.sub("\n", _SPACES.sub(" ", unicodedata.normalize("NFKC", text)))


_folded = lru_cache(maxsize=1024)(_fold)
