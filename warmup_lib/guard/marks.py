"""Which pole, place, day, currency, product or number a word stands for, told word by word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from warmup_lib.guard.countries import CODES, COUNTRIES, COUNTRIES_OF_TWO_WORDS, PEOPLES
from warmup_lib.guard.negation import negative
from warmup_lib.guard.poles import HAN_KANA, PHRASES, POLES
from warmup_lib.guard.things import CASED, NUMBER_WORDS, PAIRS, SYMBOLS, THINGS

NUMBER = "#"
THING = "@"
NEGATIVE = "!"
_REMEMBERED = 65_536
_AFFIX = re.compile(r"^(?:[cdjlmst]|qu|dell|all|nell|sull)'(?=..)|'s$")
_UN = re.compile(
    "un(?!beknown|cles?$|d[eo]|fortunat|geach|gef|i[cdfgoqtv]|less|s[eo]r|t[ei])[a-z]{4,}"
)
"""English and German words of denial: "unknown", "unbekannt", but "under", "unit", "unser"."""
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@lru_cache(_REMEMBERED)
def bare(word: str) -> str:
    """Return a word in lower case, without accents, elided articles and the English genitive."""
    folded = _AFFIX.sub("", word.casefold())
    if folded.isascii():
        return folded
    parts = unicodedata.normalize("NFKD", folded)
    return "".join(part for part in parts if not unicodedata.combining(part))


def listed(table: str) -> dict[str, str]:
    """Return name -> id of lines `id: name name ...`."""
    pairs = (line.split(": ", 1) for line in table.strip().splitlines())
    return {name: ident for ident, names in pairs for name in names.split()}


_STEMS: dict[str, str] = {}
_WORDS: dict[str, str] = {}
_HAN_KANA: dict[str, str] = {}
_PAIRS: dict[tuple[str, ...], str] = {}
_STARTS: set[str] = set()
_CASED = {code: code.lower() for code in CODES.split()} | CASED
_PHRASES = {
    f"-{pole}": (frozenset(firsts.split()), frozenset(seconds.split()))
    for pole, (firsts, seconds) in PHRASES.items()
}


def _fill() -> None:
    for pole, words in POLES.items():
        for word in words.split():
            (_STEMS if word.endswith("*") else _WORDS)[word.rstrip("*")] = f"-{pole}"
    for name, ident in listed(THINGS).items():
        (_HAN_KANA if _CJK.search(name) else _WORDS)[name] = f"@{ident}"
    for pole, words in HAN_KANA.items():
        _HAN_KANA.update((word, f"-{pole}") for word in words.split())
    _WORDS.update((word, NUMBER) for word in listed(NUMBER_WORDS))
    for line in PAIRS.strip().splitlines():
        ident, pairs = line.split(": ")
        _PAIRS.update((tuple(pair.split()), f"@{ident}") for pair in pairs.split("; "))
    for name in (*COUNTRIES.split(), *PEOPLES.split()):
        _WORDS.setdefault(name, f"@{name}")
    for name in COUNTRIES_OF_TWO_WORDS.split("; "):
        _PAIRS[tuple(name.split())] = f"@{name.replace(' ', '_')}"
    for firsts, _ in _PHRASES.values():
        _STARTS.update(firsts)
    _STARTS.update(first for first, _ in _PAIRS)


_fill()
_SHORTEST, _LONGEST = min(map(len, _STEMS)), max(map(len, _STEMS))
_IN_HAN_KANA = re.compile("|".join(sorted(_HAN_KANA, key=len, reverse=True)))
_SYMBOL = re.compile(f"[{''.join(SYMBOLS)}]")


@lru_cache(_REMEMBERED)
def mark(word: str) -> str:
    """Return what a word stands for; empty: nothing.

    Args:
        word: As written.
    """
    if word in _CASED:
        return f"@{_CASED[word]}"
    if negative(word.casefold()):
        return NEGATIVE
    folded = bare(word)
    if folded in _WORDS:
        return _WORDS[folded]
    sizes = range(min(len(folded), _LONGEST), _SHORTEST - 1, -1)
    stem = next((_STEMS[folded[:n]] for n in sizes if folded[:n] in _STEMS), "")
    return stem or ("-un" if _UN.match(folded) else "")


def marks(text: str, words: Sequence[str]) -> set[str]:
    """Return what the words and signs of a text stand for.

    Args:
        text: As written.
        words: Its words.

    Returns:
        `-` and a pole, `@` and a thing; NUMBER and NEGATIVE say that there are such words.
    """
    found = {mark(word) for word in words}
    found.discard("")
    said = [bare(word) for word in words]
    if not _STARTS.isdisjoint(said):
        found |= _together(said)
    if not text.isascii():
        found |= {_HAN_KANA[m] for m in _IN_HAN_KANA.findall(text)}
    found |= {f"@{SYMBOLS[sign]}" for sign in _SYMBOL.findall(text)}
    return found


def find_things(text: str) -> Iterator[re.Match[str]]:
    """Return where Chinese or Japanese words for places, days, currencies and products stand."""
    return (m for m in _IN_HAN_KANA.finditer(text) if _HAN_KANA[m[0]].startswith(THING))


def han_thing(name: str) -> str:
    """Return what a match of `find_things` stands for."""
    return _HAN_KANA[name]


def in_pairs(words: Sequence[str]) -> set[str]:
    """Return the words that make a name of two words with one of their neighbours, as written."""
    if _STARTS.isdisjoint(map(bare, words)):
        return set()
    return {w for pair in pairwise(words) if tuple(map(bare, pair)) in _PAIRS for w in pair}


def _together(said: Sequence[str]) -> set[str]:
    found = {_PAIRS[pair] for pair in pairwise(said) if pair in _PAIRS}
    for pole, (firsts, seconds) in _PHRASES.items():
        if not (firsts.isdisjoint(said) or seconds.isdisjoint(said)):
            found.add(pole)
    return found
