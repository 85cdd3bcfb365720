"""What a text says in which order: who owes whom, from where to where, what is divided by what."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from warmup_lib.guard.marks import THING, bare, find_things, han_thing, listed, mark
from warmup_lib.guard.numerals import AT_LEAST
from warmup_lib.guard.poles import KIN
from warmup_lib.guard.units import UNITS

_ARTICLE = "(?:(?:an?|my|our|the|their|your) )?"
_WAY = re.compile(rf"\bfrom {_ARTICLE}(\w+)(?: \w+)? (?:in)?to {_ARTICLE}(\w+)")
_BACK = re.compile(rf"\b(?:in)?to {_ARTICLE}(\w+)(?: \w+)? from {_ARTICLE}(\w+)")
_WAYS = (_WAY, re.compile(r"\bvon (\w+) nach (\w+)"))
# Which unit becomes which: "kilometers to miles", "ounces in a pound", "Meilen in Kilometer".
_UNIT_WAY = re.compile(
    rf"\b([^\W\d_]+) (?=(?:(?:in)?to|in|per|zu|nach|en|à|em) (?:1 )?{_ARTICLE}([^\W\d_]+))"
)
_MEASURES = listed(UNITS) | {"pound": "lb", "pounds": "lb"}
# "is tom older than jerry", "tom is older than jerry", "ist tom älter als jerry".
_IS = "(?:are|is|was|were|ist|sind|war|waren)"
_MORE = r"(?:more \w+|less \w+|\w{2,}er|worse)"
_THAN = (
    re.compile(rf"\b{_IS} {_ARTICLE}(\w+)(?: \w+)? {_MORE} (?:than|als) {_ARTICLE}([^\W\d]+)"),
    re.compile(rf"\b(\w+) {_IS}(?: \w+)? {_MORE} (?:than|als) {_ARTICLE}([^\W\d]+)"),
)
_NO_THING = """
    before ever expected i it normal normally one she that they this usual usually we what you
"""
# "8 / 2" and "2*3"; without spaces, a hyphen or a slash is part of a date or a range.
_OPERATOR = re.compile(
    r"(?<=\d) *(?: ([-/<>\u2212\u2013]) |([+*^\u00d7\u00f7])"
    r"|\b(x|plus|minus|times|(?:multiplied|divided) by"
    r"|mal|geteilt durch|m[aá]s|menos|por|entre|fois|moins|pi[uù]|meno|per|diviso|mais)\b)"
    r" *(?=-?\d)"
)
_OPERATIONS = listed("""
-: \u2212 \u2013 minus menos moins meno
+: plus mas más più piu mais
*: \u00d7 x times multiplied_by mal fois por per
/: \u00f7 divided_by geteilt_durch entre diviso
""")
_COMPARED = re.compile(r"(?<=\w) ?([=!<>]=|≠|≤|≥|<|>) ?(?=\w)")
_FUNCTION = re.compile(
    r"\b(sum|product|difference|quotient|square root|square|cube root|cube|log|logarithm|factorial)"
    r" of (?:the )?(?=-?\d)"
)
# People say "5 items" for "more than 5", but not for "less than 5"; "au moins 5" is "5 or more".
_UNDER = re.compile(r"\b(?:under|below|unter|lower than|at most)(?= [$€£]?-?\d)")
_LESS = re.compile(
    rf"{AT_LEAST}\b(?:fewer|less|weniger|menos|moins|meno)\b(?! \d)"
    r"|\b(?:too little|zu wenig|trop peu|demasiado poco|troppo poco)\b"
)
_SAY_AGO = "ago atras atrás fa ha hace há il vor"
_SAY_LESS = "fewer less weniger menos moins meno little wenig peu poco"
_DIGIT = re.compile(r"\d")
_NUMBERS = re.compile(r"\d+")
_UNTIL = re.compile(r"\b(?:until|till|hasta|bis|jusqu'à) (?=-?\d)")
_AGO = re.compile(
    r"\bago\b|\bvor -?\d|\d ?[^\W\d_]+ (?:fa|atr[aá]s)\b|\b(?:hace|il y a|h[aá]) "
    r"(?:-?\d|un[ae]? (?:a[nñ]|d[ií]a|heure|hora|jour|mes|minut|mois|seman|semaine))"
)
_HAN_AGO = re.compile(r"(?:[天日周月年时秒]|時間|週間|小时|分钟?)[以之]?前")
_FREE = re.compile(
    r"\w-free\b|\b(?:alcohol|caffeine|dairy|duty|gluten|interest|lactose|sugar|tax) free\b"
)
# "World War II", but "Yesterday I".
_ROMAN = re.compile(r"(?<=[A-Za-z] )(?:[IVX]{2,5}|[VX])\b")
# "option B", "vitamin c", "answer A"; but "answer a question".
_LETTERED = """
    answer appendix building class exhibit gate grade group hepatitis option part plan room section
    step terminal type variant version vitamin
"""
_LETTER = re.compile(
    rf"\b((?i:{'|'.join(_LETTERED.split())})) "
    r"([A-HJ-Z]|[b-df-hj-np-tv-xz]|a(?= (?:and|is|or|vs)\b|[?.,;!)]|$))(?![\w'])"
)
# What is brought from one thing to another may be brought back: "translate from French".
_BRINGS = re.compile(
    r"\b(?:bus(?:es)?|convert\w*|exchang\w*|fl(?:ew|ies|y)|flight\w*|migrat\w*|switch\w*|ticket\w*"
    r"|trains?|translat\w*|trip|trips)\b"
)
_FROM = re.compile(rf"\bfrom {_ARTICLE}([^\W\d_]+)")
_OR = "or oder o u ou"
_EITHER = f"{_OR} and und y et e"
_ARTICLES = "a an the ein eine einer un una une uno um uma la le el"
_GOVERNING = "from to into than von nach als zu de desde hacia vers da di para que"
_IS_EITHER, _IS_ARTICLE, _IS_GOVERNING, _IS_NO_THING, _IS_LETTERED, _IS_LESS, _IS_AGO, _IS_OR = (
    frozenset(words.split())
    for words in (_EITHER, _ARTICLES, _GOVERNING, _NO_THING, _LETTERED, _SAY_LESS, _SAY_AGO, _OR)
)


def in_order(text: str, words: Sequence[str], things: Collection[str]) -> set[str]:
    """Return the order of a text's places, days, currencies, products and names, if several.

    Where it names a way, "from A to B", that says more. Those around "or" have none, nor have known
    ones around "and", unless "from", "to" or "than" stands before them or several numbers belong to
    them in turn.

    Args:
        text: As written.
        words: Its words.
        things: What they stand for, as `marks` and `names` return it.
    """
    free = len(_NUMBERS.findall(text)) < 2
    found = _in_turn(words, {one for one in things if one.startswith(THING)}, free)
    if not text.isascii():
        told = {one for group in found for one in group}
        found += [{one} for m in find_things(text) if (one := han_thing(m[0])) not in told]
    if len(found) < 2 or any(True for _ in _ways(text.casefold())):
        return set()
    return {_in_one(found)}


def kin_in_order(words: Sequence[str], things: Collection[str]) -> set[str]:
    """Return the order of the relatives of a text, if several: who sends whom money.

    Args:
        words: Its words.
        things: What they stand for, as `marks` returns it.
    """
    found = _in_turn(words, KIN.intersection(things), True)
    return {_in_one(found)} if len(found) > 1 else set()


def _in_one(groups: Sequence[Collection[str]]) -> str:
    return "".join(f"<{'&'.join(sorted(group))}" for group in groups)


def _in_turn(words: Sequence[str], things: Collection[str], free: bool) -> list[set[str]]:
    """Return the things of a text in their order; those that have none, if `free`, together."""
    found: list[set[str]] = []
    seen: set[str] = set()
    first = last = -9
    for place, word in enumerate(words):
        one = mark(word) or f"{THING}{word.casefold()}"
        if one not in things or one in seen:
            continue
        seen.add(one)
        if free and _alike(words, last, place) and _ungoverned(words, first):
            found[-1].add(one)
        else:
            found.append({one})
            first = place
        last = place
    return found


def _alike(words: Sequence[str], last: int, place: int) -> bool:
    """Say whether only "or", or "and" between known things, joins two words, and an article."""
    if not 1 < place - last < 4:
        return False
    joined, *article = (word.casefold() for word in words[last + 1 : place])
    # "I pay Anna and Greta pays me": two people may belong to two clauses.
    known = joined in _IS_OR or (bool(mark(words[last])) and bool(mark(words[place])))
    return known and joined in _IS_EITHER and (not article or article[0] in _IS_ARTICLE)


def _ungoverned(words: Sequence[str], first: int) -> bool:
    return first < 1 or words[first - 1].casefold() not in _IS_GOVERNING


def relations(text: str, folded: str, words: Sequence[str]) -> set[str]:
    """Return what a text says of two things or numbers: a way, an operation, a bound.

    Args:
        text: As written.
        folded: The same, case folded and with its number words in digits.
        words: Its words.
    """
    said = {word.casefold() for word in words}
    found = {f">{one}>{other}" for one, other in _ways(folded)}
    found |= {f">than>{one}>{other}" for one, other in _compared(folded)}
    found |= _of_numbers(folded) | _in_words(folded, said) | comparisons(folded)
    if "from" in said and _BRINGS.search(folded):
        things = (mark(m[1]) for m in _FROM.finditer(folded))
        found |= {f"-from{one}" for one in things if one.startswith(THING)}
    if not _IS_LETTERED.isdisjoint(said):
        found |= {f"={m[1].casefold()}_{m[2].casefold()}" for m in _LETTER.finditer(text)}
    return found | {f"#{numeral}" for numeral in _ROMAN.findall(text)}


def comparisons(text: str) -> set[str]:
    """Return the signs by which a text or a piece of code compares, such as "==" and "<"."""
    if not any(sign in text for sign in "<>=≠≤≥"):
        return set()
    return {f"op{m[1]}" for m in _COMPARED.finditer(text)}


def _in_words(folded: str, said: Collection[str]) -> set[str]:
    found = set()
    if not _IS_LESS.isdisjoint(said) and _LESS.search(folded):
        found.add("-under")
    if not _IS_AGO.isdisjoint(said) and _AGO.search(folded):
        found.add("-ago")
    if not folded.isascii() and _HAN_AGO.search(folded):
        found.add("-ago")
    if "free" in said and _FREE.search(folded):
        found.add("-free")
    return found


def _of_numbers(folded: str) -> set[str]:
    if _DIGIT.search(folded) is None:
        return set()
    found = {f"op{_operation(m)}" for m in _OPERATOR.finditer(folded)}
    found |= {f"op:{m[1].replace(' ', '_')}" for m in _FUNCTION.finditer(folded)}
    signs = {"-under": _UNDER, "-until": _UNTIL}
    return found | {sign for sign, pattern in signs.items() if pattern.search(folded)}


def _operation(parts: re.Match[str]) -> str:
    said = (parts[1] or parts[2] or parts[3]).replace(" ", "_")
    return _OPERATIONS.get(said, said)


def _compared(folded: str) -> Iterator[tuple[str, str]]:
    if "than" in folded or "als" in folded:
        for pattern in _THAN:
            for parts in pattern.finditer(folded):
                if parts[2] not in _IS_NO_THING:
                    yield parts[1], parts[2]


def _ways(folded: str) -> Iterator[tuple[str, str]]:
    if "from " in folded or "von " in folded:
        for pattern in _WAYS:
            for there in pattern.finditer(folded):
                yield _measure(there[1]), _measure(there[2])
        for back in _BACK.finditer(folded):
            yield _measure(back[2]), _measure(back[1])
    for one, other in _UNIT_WAY.findall(folded):
        units = [_MEASURES.get(bare(word), "") for word in (one, other)]
        if all(units) and units[0] != units[1]:
            yield units[0], units[1]


def _measure(word: str) -> str:
    return _MEASURES.get(bare(word), word)
