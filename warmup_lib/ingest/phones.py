"""Phone numbers in text: a shape or a word that says so, then the country's numbering plan.

Digits alone are no phone number: order numbers, dates and ids look the same. A candidate needs an
international prefix, a national prefix with a plan that fits, the North American grouping, or a
word such as "phone" before it.
"""

from __future__ import annotations

import re

import phonenumbers

_GAP = r"[ \u00a0().\-/]{0,3}"
_INSIDE = r"[A-Za-z0-9_.,+#/@=:-]"
_END = r"(?![A-Za-z0-9_-]|\.?\d)"

# What may not stand before a number is looked at after its first character: a pattern that begins
# with a literal is searched for an order of magnitude faster.
_INTERNATIONAL = re.compile(
    rf"(?:\+(?<![A-Za-z0-9_+]\+)|0(?<!{_INSIDE}0)0){_GAP}[1-9](?:{_GAP}\d){{6,14}}{_END}"
)
_NATIONAL = re.compile(
    rf"(?:\((?<!{_INSIDE}\()0[1-9]\d{{0,4}}\)"
    rf"|0(?<!{_INSIDE}0)(?!\d?[./-]\d{{1,2}}[./-]\d{{2,4}}(?!\d))[1-9])(?:{_GAP}\d){{5,10}}{_END}"
)
_AMERICAN = re.compile(
    rf"(?<!{_INSIDE})(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{{4}}{_END}"
)
_CHINESE = re.compile(rf"1(?<!{_INSIDE}1)[3-9]\d(?:[ -]?\d{{4}}){{2}}{_END}")
_DIGITS = re.compile(rf"\(?\d(?:{_GAP}\d){{6,13}}{_END}")
_NAME = re.compile(
    r"(?:\b(?:tele)?(?:phone|fon|fono|fone)|\b(?:tel|mobile|mobil|cell|whatsapp|fax|handy|"
    r"móvil|celular|portable|téléphone|teléfono|numéro|rufnummer|telefonnummer|handynummer)\b|"
    r"\b(?:call|text|ring|reach|contact) (?:me|us|him|her|them)\b|\brufen sie\b|\bappelez\b|"
    r"电话|電話|手机|手機|携帯|联系方式|号码)"
    r"(?:[\s:.#\-\u00a0\u2013\u3000\uff1a]|\b(?:number|no|nr|nummer|num|is|at|on|under|me|us|unter|est|es|au|"
    r"al|an|ist|mich)\b|号码|号|是|为){0,8}\Z",
    re.ASCII,
)
_NAME_LENGTH = 48
_NAME_PARTS = (
    "phone", "fon", "fone", "tel", "mobil", "cell", "whatsapp", "fax", "handy", "móvil", "celular",
    "portable", "numéro", "rufnummer", "call", "text", "ring", "reach", "contact", "rufen",
    "appelez", "电话", "電話", "手机", "手機", "携帯", "联系", "号码",
)  # fmt: skip
"""One of these is in every text that `_NAME` fits: a cheap look before a costly one."""

_GROUPED = ("GB", "DE", "FR", "IT", "NL", "BE", "CH", "AT", "SE", "AU", "JP", "KR", "CN", "IN")
_IN_ONE_PIECE = ("GB", "DE", "FR")
"""Every further plan here makes more order numbers that begin with 0 look like a phone number."""


def redact(text: str, placeholder: str) -> str:
    """Return `text` with phone numbers replaced by `placeholder`."""

    def international(found: re.Match[str]) -> str:
        return placeholder if _is_international(found[0]) else found[0]

    def named(found: re.Match[str]) -> str:
        before = found.string[max(0, found.start() - _NAME_LENGTH) : found.start()].lower()
        told = any(part in before for part in _NAME_PARTS) and _NAME.search(before)
        return placeholder if told else found[0]

    def national(found: re.Match[str]) -> str:
        return placeholder if _is_national(found[0]) else found[0]

    def american(found: re.Match[str]) -> str:
        return placeholder if _parses(found[0], "US") else found[0]

    text = _INTERNATIONAL.sub(international, text)
    text = _DIGITS.sub(named, text)
    text = _CHINESE.sub(placeholder, text)
    text = _NATIONAL.sub(national, text)
    return _AMERICAN.sub(american, text)


def _is_international(number: str) -> bool:
    number = number.removeprefix("00")
    return _parses(number if number.startswith("+") else f"+{number}", None)


def _is_national(number: str) -> bool:
    """Return whether a number with a national prefix fits the plan of a country that has one.

    Without any grouping only mobile numbers count: those are what people type in one piece.
    """
    if number.isdigit():
        return any(_parses(number, region, mobile=True) for region in _IN_ONE_PIECE)
    return any(_parses(number, region) for region in _GROUPED)


def _parses(number: str, region: str | None, *, mobile: bool = False) -> bool:
    try:
        parsed = phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number(parsed):
        return False
    return not mobile or phonenumbers.number_type(parsed) == phonenumbers.PhoneNumberType.MOBILE
