"""What a text says in which order: who owes whom, from where to where, what is divided by what."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from warmup_lib.guard.marks import THING, find_things, han_thing, mark

_ARTICLE = "(?:(?:an?|my|our|the|their|your) )?"
_WAY = re.compile(rf"\bfrom {_ARTICLE}(\w+)(?: \w+)? (?:in)?to {_ARTICLE}(\w+)")
_BACK = re.compile(rf"\b(?:in)?to {_ARTICLE}(\w+)(?: \w+)? from {_ARTICLE}(\w+)")
# "8 / 2" and "2*3"; without spaces, a hyphen or a slash is part of a date or a range.
_OPERATOR = re.compile(r"(?<=\d) *(?: ([-/<>]) |([+*^])) *(?=\d)")
# People say "5 items" for "more than 5", but not for "less than 5".
_UNDER = re.compile(r"\b(?:under|below|(?:less|fewer|lower) than|at most)(?= [$€£]?\d)")
# "World War II", but "Yesterday I".
_ROMAN = re.compile(r"(?<=[A-Za-z] )(?:[IVX]{2,5}|[VX])\b")


def in_order(text: str, words: Sequence[str], things: Collection[str]) -> set[str]:
    """Return the order of a text's places, days, currencies, products and names, if several.

    Where it names a way, "from A to B", that says more.

    Args:
        text: As written.
        words: Its words.
        things: What they stand for, as `marks` and `names` return it.
    """
    said = [m if (m := mark(word)) else f"{THING}{word.casefold()}" for word in words]
    found = dict.fromkeys(one for one in said if one.startswith(THING) and one in things)
    if not text.isascii():
        found |= dict.fromkeys(han_thing(m[0]) for m in find_things(text))
    return {f"<{'<'.join(found)}"} if len(found) > 1 and not _ways(text.casefold()) else set()


def relations(text: str) -> set[str]:
    """Return what a text says of two things or numbers: a way, an operation, a bound.

    Args:
        text: As written.
    """
    folded = text.casefold()
    found = _ways(folded) | {f"op{m[1] or m[2]}" for m in _OPERATOR.finditer(folded)}
    if _UNDER.search(folded):
        found.add("-under")
    return found | {f"#{numeral}" for numeral in _ROMAN.findall(text)}


def _ways(folded: str) -> set[str]:
    there = {f">{m[1]}>{m[2]}" for m in _WAY.finditer(folded)}
    return there | {f">{m[2]}>{m[1]}" for m in _BACK.finditer(folded)}
