"""Phone numbers in text: a shape or a word that says so, then the country's numbering plan.

Digits alone are no phone number: order numbers, dates and ids look the same. A candidate needs an
international prefix, a national prefix with a plan that fits, the North American grouping, or a
word such as "phone" before it.
"""

from __future__ import annotations

import re

import phonenumbers

_GAP = r"[ \u00a0().\-/]{0,3}"
_DATE = r"(?!(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})(?!\d))"
_START = rf"(?<![\w.,+#/@=:-]){_DATE}"
_END = r"(?![\w-]|\.\d)"

_INTERNATIONAL = re.compile(rf"(?<![\w+])(?:\+|00){_GAP}[1-9](?:{_GAP}\d){{6,14}}{_END}")
_NATIONAL = re.compile(rf"{_START}\(?0[1-9](?:{_GAP}\d){{7,10}}{_END}")
_AMERICAN = re.compile(
    rf"{_START}(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{{4}}{_END}"
)
_CHINESE = re.compile(r"(?<![\w.,+#/@=:-])1[3-9]\d(?:[ -]?\d{4}){2}(?!\w|-\w|\.\d)", re.ASCII)
_NAMED = re.compile(
    r"((?:\b(?:tele)?(?:phone|fon|fono|fone)|\b(?:tel|mobile|mobil|cell|whatsapp|fax|handy|"
    r"móvil|celular|portable|téléphone|teléfono|numéro|rufnummer|telefonnummer|handynummer)\b|"
    r"\b(?:call|text|ring|reach|contact) (?:me|us|him|her|them)\b|\brufen sie\b|\bappelez\b|"
    r"电话|電話|手机|手機|携帯|联系方式|号码)"
    r"(?:[\s:.#\-\u2013\uff1a]|\b(?:number|no|nr|nummer|num|is|at|on|under|me|us|unter|est|es|au|al|an|"
    r"ist|mich)\b|号码|号|是|为){0,8})"
    rf"(\(?\d(?:{_GAP}\d){{6,13}}){_END}",
    re.IGNORECASE,
)

_REGIONS = (
    "GB",
    "DE",
    "FR",
    "IT",
    "NL",
    "BE",
    "CH",
    "AT",
    "SE",
    "AU",
    "JP",
    "KR",
    "CN",
    "IN",
    "TR",
)
_MOBILE = (phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE)


def redact(text: str, placeholder: str) -> str:
    """Return `text` with phone numbers replaced by `placeholder`."""

    def checked(found: re.Match[str]) -> str:
        return placeholder if _is_international(found[0]) else found[0]

    def national(found: re.Match[str]) -> str:
        return placeholder if _is_national(found[0]) else found[0]

    def american(found: re.Match[str]) -> str:
        return placeholder if _parses(found[0], "US") else found[0]

    text = _INTERNATIONAL.sub(checked, text)
    text = _NAMED.sub(rf"\g<1>{placeholder}", text)
    text = _NATIONAL.sub(national, text)
    text = _AMERICAN.sub(american, text)
    return _CHINESE.sub(placeholder, text)


def _is_international(number: str) -> bool:
    number = number.removeprefix("00")
    return _parses(number if number.startswith("+") else f"+{number}", None)


def _is_national(number: str) -> bool:
    """Return whether a number with a national prefix fits the plan of a country that has one.

    Without any grouping only mobile numbers count: those are what people type in one piece.
    """
    grouped = not number.isdigit()
    return any(_parses(number, region, mobile=not grouped) for region in _REGIONS)


def _parses(number: str, region: str | None, *, mobile: bool = False) -> bool:
    try:
        parsed = phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number(parsed):
        return False
    return not mobile or phonenumbers.number_type(parsed) in _MOBILE
