"""Numbers in a text: digits of any script and Chinese numerals, with the unit that follows."""

from __future__ import annotations

import re
import unicodedata

from warmup_lib.guard.marks import bare, listed, mark
from warmup_lib.guard.things import NUMBER_WORDS, ORDINALS
from warmup_lib.guard.units import UNITS

_DIGITS = dict(
    zip(
        "零〇一二三四五六七八九壹贰叁肆伍陆柒捌玖",
        [0, 0, *range(1, 10), *range(1, 10)],
        strict=True,
    )
) | {"两": 2, "兩": 2}
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_NUMERALS = "".join([*_DIGITS, *_UNITS, *_MYRIADS])

# 一 is mostly an article (一个, 一下, 一样): it is a number beside one of these only.
_ONE = re.compile(
    r"(?<=[第周期拜月年])一|一(?=[元块塊圆圓天日月年号號点點分秒时時小周折倍岁歳円回])"
)
_NO_NUMBER = re.compile("千万别|千万不|万一|十分|万能|百货|四处|七夕|三星|统一|唯一")
_WORD = re.compile(r"[^\W\d_]+")
_TENS = re.compile(r"\b([2-9]0)[\s-]([1-9]|one)\b(?![.,]\d)")
_HUNDREDS = re.compile(r"\b(?:([1-9]|one|a) )?100(?:(?: and | )([1-9]\d?))?\b(?![.,]\d)")
_VALUES = listed(NUMBER_WORDS)
_UNIT_IDS = listed(UNITS)
_HAN_UNIT = "|".join(
    sorted((unit for unit in _UNIT_IDS if unit >= "\u3040"), key=len, reverse=True)
)
# A minus sign stands before a number and after nothing that a range, a date or a name has there.
_NUMBER = re.compile(
    r"((?<![^\s(\[{=<>,;:*/+^])[-\u2212\u2013])?(\d+(?:[.,:/-]\d+)*)"
    r"[\s-]?(?:° ?|(?:degrees?|grad|grados|gradi|graus|degr[ée]s) )?"
    rf"({_HAN_UNIT}|[^\W\d_]+(?:/[^\W\d_]+)?|[%‰])?"
)
# "al menos 5", "au moins 5", "más o menos 5": at least, about.
AT_LEAST = (
    r"(?<!\bal )(?<!lo )(?<!\bau )(?<!\bdu )(?<!more or )(?<!mehr oder )(?<!m[aá]s o )"
    r"(?<!mais ou )(?<!plus ou )(?<!pi[uù] o )"
)
_MINUS = re.compile(rf"(?<!\d ){AT_LEAST}\b(?:minus|negative|menos|moins|meno) (?=\d)")
_CLOCK = re.compile(r"(?<=\d)( ?)([ap])\. ?m\b\.?")
# "1,000" is a thousand where it is English that says it, or where commas stand thrice.
_THOUSANDS = re.compile(r"(?<![\d.,(\[{])\d{1,3}(?:,\d{3})+(?![\d,]|\.\d{3}\b)")
_IS_ENGLISH = re.compile(r"[$£]|\b(?:the|of|is|are|my|for|what|how|with|to|can|you|it|pay|paid)\b")
# "order one card", "one week", but "this one", "one of them", "can one pay", "with one of ...".
_ONE_THING = re.compile(r"(?:\b([a-z]+) )?\bone (?=([a-z]+))")
_AFTER_PRONOUN = """
    and at but by can could does for from had has have he i if in is it of on or she should so that
    they thing to was we when where which who will with would you
"""
_BEFORE_PRONOUN = """
    a an another any bad better can correct could did different do does each every first good how
    if last may might must my new next no old other particular right same should some such that the
    their these this those what when which would wrong your
"""
_LIKE_ARTICLE = "at for from in into of on per through to using via with"
_IS_AFTER_PRONOUN = frozenset(_AFTER_PRONOUN.split())
_IS_BEFORE_PRONOUN = frozenset(_BEFORE_PRONOUN.split())
_IS_LIKE_ARTICLE = frozenset(_LIKE_ARTICLE.split())
_DIGIT = re.compile(r"\d")
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_IN_WORDS = {str(n): word for n, word in enumerate(ORDINALS.split(), start=1)}
_MONTH = re.compile(r"@m\d+")
_HAN_NUMBER = re.compile(rf"([{_NUMERALS}]+)({_HAN_UNIT})?")


def in_digits(text: str, in_words: bool) -> str:
    """Return a text with its number words in digits, and one way to write signs and thousands.

    Args:
        text: Case folded.
        in_words: It holds number words.
    """
    if in_words:
        text = _WORD.sub(lambda m: _VALUES.get(bare(m[0]), m[0]), text)
        text = _HUNDREDS.sub(_tens_and_ones, _TENS.sub(_tens_and_ones, text))
    if "one " in text:
        text = _ONE_THING.sub(_one, text)
    if "," in text:
        english = _IS_ENGLISH.search(text) is not None
        text = _THOUSANDS.sub(lambda m: _thousands(m[0], english), text)
    if _DIGIT.search(text) is None:
        return text
    return _CLOCK.sub(r"\1\2m", _MINUS.sub("-", text))


def numbers(text: str) -> list[str]:
    """Return the numbers of a text, each with its sign and unit.

    Args:
        text: Case folded, its number words in digits.
    """
    if text.isascii():
        if _DIGIT.search(text) is None:
            return []
        return [_number(parts) for parts in _NUMBER.findall(text)]
    text = re.sub(r"\d", lambda m: str(unicodedata.digit(m[0])), text)
    found = [_number(parts) for parts in _NUMBER.findall(text)]
    return found + [_han_value(run[1]) + _unit(run[2]) for run in han_numerals(text)]


def ordinals_in_words(text: str) -> str:
    """Return a text with "2nd" as "second"; beside a month, "5th" is a day and stays a number."""
    if _ORDINAL.search(text) is None or any(
        _MONTH.fullmatch(mark(word)) for word in _WORD.findall(text)
    ):
        return text
    return _ORDINAL.sub(lambda m: _IN_WORDS.get(m[1], m[0]), text)


def han_numerals(text: str) -> list[re.Match[str]]:
    """Return where numbers stand in Chinese numerals: the numeral, then its unit if it has one."""
    text = _NO_NUMBER.sub(lambda m: " " * len(m[0]), text)
    ones = {m.start() for m in _ONE.finditer(text)}
    return [
        run for run in _HAN_NUMBER.finditer(text) if run[1] != "一" or run[2] or run.start() in ones
    ]


def _tens_and_ones(parts: re.Match[str]) -> str:
    """Return an English number of several words, those but "one" already being digits."""
    tens, ones = ("1" if part in ("one", "a") else part for part in parts.groups(""))
    value = (
        int(tens or 1) * 100 + int(ones or 0) if parts.re is _HUNDREDS else int(tens) + int(ones)
    )
    return str(value)


def _one(parts: re.Match[str]) -> str:
    before, after = parts.groups()
    pronoun = before in _IS_BEFORE_PRONOUN or after in _IS_AFTER_PRONOUN
    if pronoun or (before in _IS_LIKE_ARTICLE and after not in _UNIT_IDS):
        return parts[0]
    return f"{before} 1 " if before else "1 "


def _thousands(number: str, english: bool) -> str:
    return number.replace(",", "") if english or number.count(",") > 1 else number


def _number(parts: tuple[str, str, str]) -> str:
    sign, digits, unit = parts
    return ("-" if sign else "") + digits + _unit(unit)


def _unit(word: str | None) -> str:
    """Return the id of a unit, or of two as in "km/h"; empty: the word is none."""
    if not word:
        return ""
    first, _, per = word.partition("/")
    unit, by = (_UNIT_IDS.get(bare(part), "") if part else "" for part in (first, per))
    return f"{unit}/{by}" if unit and by else unit


def _han_value(numeral: str) -> str:
    if not any(c in _UNITS or c in _MYRIADS for c in numeral):
        # As a string: Python makes no integer of more than 4300 digits.
        return "".join(str(_DIGITS[c]) for c in numeral).lstrip("0") or "0"
    total = section = digit = 0
    for char in numeral:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _UNITS:
            section += (digit or 1) * _UNITS[char]
            digit = 0
        else:
            total += (section + digit or 1) * _MYRIADS[char]
            section = digit = 0
    return str(total + section + digit)
