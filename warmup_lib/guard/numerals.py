"""Numbers in a text: digits of any script and Chinese numerals, with the unit that follows."""

from __future__ import annotations

import re
import unicodedata

from warmup_lib.guard.marks import bare, listed
from warmup_lib.guard.things import NUMBER_WORDS, UNITS

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
    sorted((unit for unit in _UNIT_IDS if not unit.isascii()), key=len, reverse=True)
)
_NUMBER = re.compile(rf"(\d+(?:[.,:/-]\d+)*)[\s-]?({_HAN_UNIT}|[^\W\d_]+|%)?")
_HAN_NUMBER = re.compile(rf"([{_NUMERALS}]+)({_HAN_UNIT})?")


def numbers(text: str, in_words: bool) -> list[str]:
    """Return the numbers of a text, each with its unit.

    Args:
        text: Case folded.
        in_words: It holds number words.
    """
    if in_words:
        text = _WORD.sub(lambda m: _VALUES.get(bare(m[0]), m[0]), text)
        text = _HUNDREDS.sub(_in_digits, _TENS.sub(_in_digits, text))
    if text.isascii():
        return [number + _unit(unit) for number, unit in _NUMBER.findall(text)]
    text = re.sub(r"\d", lambda m: str(unicodedata.digit(m[0])), text)
    found = [number + _unit(unit) for number, unit in _NUMBER.findall(text)]
    return found + [str(_han_value(run[1])) + _unit(run[2]) for run in han_numerals(text)]


def han_numerals(text: str) -> list[re.Match[str]]:
    """Return where numbers stand in Chinese numerals: the numeral, then its unit if it has one."""
    text = _NO_NUMBER.sub(lambda m: " " * len(m[0]), text)
    ones = {m.start() for m in _ONE.finditer(text)}
    return [
        run for run in _HAN_NUMBER.finditer(text) if run[1] != "一" or run[2] or run.start() in ones
    ]


def _in_digits(parts: re.Match[str]) -> str:
    """Return an English number of several words, those but "one" already being digits."""
    tens, ones = ("1" if part in ("one", "a") else part for part in parts.groups(""))
    value = (
        int(tens or 1) * 100 + int(ones or 0) if parts.re is _HUNDREDS else int(tens) + int(ones)
    )
    return str(value)


def _unit(word: str | None) -> str:
    return "%" if word == "%" else _UNIT_IDS.get(bare(word), "") if word else ""


def _han_value(numeral: str) -> int:
    if not any(c in _UNITS or c in _MYRIADS for c in numeral):
        return int("".join(str(_DIGITS[c]) for c in numeral))
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
    return total + section + digit
