"""Redaction: personal data and secrets in a text become typed placeholders.

Each kind has a cheap sign that a text must hold before its patterns are tried, since almost no
text holds anything; what a pattern finds is then checked (Luhn, mod 97, numbering plans), so that
order numbers, dates and ids stay.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import orjson
from stdnum import iban, luhn

from warmup_lib.evidence import FIELD
from warmup_lib.ingest import phones, tokens
from warmup_lib.ingest.outcome import Reason, Rejected
from warmup_lib.keys import KEY_VERSION

EMAIL, CARD, IBAN, PHONE = "<EMAIL>", "<CARD>", "<IBAN>", "<PHONE>"

_REMEMBERED = range(512, 64 * 1024)
"""Lengths of the texts whose redaction is remembered: system prompts and tools come again and
again, short texts are quicker to do again, and longer ones would take too much memory."""

_SEVEN_DIGITS = re.compile(r"\d(?:\D{0,3}\d){6}")

_AT = r"(?:[@\uff20]|%40|\\{1,4}u0040)"
_AT_SIGNS = ("@", "\uff20", "%40", "u0040")
"""Also full-width, in a URL, and in JSON inside a string (the arguments of a tool call)."""

# Boundaries are those of ASCII words: Chinese and Japanese write no space around a number.
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9_.%+'\u00c0-\u1fff-])[A-Za-z0-9_.%+'\u00c0-\u1fff-]{1,64}"
    rf"{_AT}(?:[\w-]{{1,63}}\.){{1,8}}(?:[A-Za-z]{{2,24}}(?![A-Za-z0-9_])|[^\W\d_]{{2,24}}(?!\w))"
)
_EMAIL_IN_ANY_SCRIPT = re.compile(
    rf"[\w.%+'-]{{1,64}}{_AT}(?:[\w-]{{1,63}}\.){{1,8}}[^\W\d_]{{2,24}}"
)

_CARD = re.compile(
    r"(?<![A-Za-z0-9_.,+/-])(?:\d{12,19}"
    r"|\d{4}(?P<four>[ \u00a0.-])\d{4}(?P=four)\d{4}(?P=four)\d{1,4}(?:(?P=four)\d{1,3})?"
    r"|\d{4}(?P<six>[ \u00a0.-])\d{6}(?P=six)\d{4,5}"
    # Over two lines only when grouped: columns of order numbers are not.
    r"|\d{4}\r?\n\d{4}(?P<a>[ \u00a0.-])\d{4}(?P=a)\d{4}"
    r"|\d{4}(?P<b>[ \u00a0.-])\d{4}\r?\n\d{4}(?P=b)\d{4}"
    r"|\d{4}(?P<c>[ \u00a0.-])\d{4}(?P=c)\d{4}\r?\n\d{4}"
    r")(?![A-Za-z0-9_-])(?!\.?\d)"
)
_ISSUERS = re.compile(
    r"(?:4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|(?:5[1-5]|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d+(?<=^\d{16})"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12,15}"  # Discover
    r"|3(?:0[0-5]|[689]\d)\d{11}"  # Diners Club
    r"|35(?:2[89]|[3-8]\d)\d{12,15}"  # JCB
    r"|62\d{14,17}"  # UnionPay
    r"|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15})",  # Maestro
    re.ASCII,
)

_IBAN_START = re.compile(r"[A-Za-z]{2}\d{2}", re.ASCII)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,30}", re.ASCII)

_CONTRACT = re.compile(
    rf"{KEY_VERSION}:[0-9a-f]{{6}}:[0-9a-f]{{16}}:[a-z0-9.]{{1,32}}"
    r"(?::[0-9a-f]{16})?(?::[0-9a-f]{12}:[0-9a-f]{32})?(?![0-9A-Za-z])"
)
"""A key of docs/keys.md, or the name of an index."""

_DIGESTS = frozenset({"secret_id", "encoder", "template", "redis_epoch", "salt"})
_HEX = re.compile(r"[0-9a-f]{6,64}")


def redact(text: str) -> str:
    """Return `text` with personal data and secrets replaced."""
    return _remembered(text) if len(text) in _REMEMBERED else _redact(text)


def redact_json(value: Any) -> Any:
    """Return a JSON value with every string in it redacted, the names of its fields too.

    Of numbers only those that are a card's go: hardly any other number passes its checks.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, int | float) and 10**11 <= value < 10**19:
        return CARD if value == int(value) and _is_card(str(int(value))) else value
    if isinstance(value, list):
        return [redact_json(v) for v in value]
    if isinstance(value, dict):
        return {redact(str(k)): _member(k, v) for k, v in value.items()}
    return value


def _member(name: str, value: Any) -> Any:
    if name == FIELD and isinstance(value, dict):
        return {redact(str(k)): _seen(k, v) for k, v in value.items()}
    return redact_json(value)


def _seen(name: str, value: Any) -> Any:
    """Return a member of a gateway's evidence: its digests stay, whose digits can be a card's."""
    if name == "looked" and isinstance(value, list):
        return [
            {redact(str(k)): _key(v) for k, v in one.items()}
            if isinstance(one, dict)
            else redact_json(one)
            for one in value
        ]
    kept = name in _DIGESTS and isinstance(value, str) and _HEX.fullmatch(value)
    return value if kept else redact_json(value)


def _key(value: Any) -> Any:
    """Return a member of a look: of a key, what the contract makes it of stays."""
    found = _CONTRACT.match(value) if isinstance(value, str) else None
    if found is None:
        return redact_json(value)
    return found[0] + redact(value[found.end() :])


def dump_redacted(value: Any, *, sort: bool = False) -> tuple[str, bool]:
    """Return a JSON value as redacted text, and whether something was replaced.

    Args:
        value: Anything that JSON can hold.
        sort: Write the fields of objects in the order of their names. Without it they stay as
            logged, which matters where a chat template prints them.

    Raises:
        Rejected: It is nested too deeply.
    """
    raw = dump(value, sort=sort)
    clean = _remembered_json(raw) if len(raw) in _REMEMBERED else _clean_json(raw)
    return clean, clean.encode() != raw


def dump(value: Any, *, sort: bool = False) -> bytes:
    """Return a JSON value as text, the fields of objects in the order of their names if `sort`.

    Raises:
        Rejected: It is nested too deeply.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort else 0)
    except orjson.JSONEncodeError:
        # A decoded value holds nothing else that can't be written.
        raise Rejected(Reason.TOO_DEEP) from None


@functools.lru_cache(maxsize=512)
def _remembered(text: str) -> str:
    return _redact(text)


@functools.lru_cache(maxsize=512)
def _remembered_json(raw: bytes) -> str:
    return _clean_json(raw)


def _clean_json(raw: bytes) -> str:
    return orjson.dumps(redact_json(orjson.loads(raw))).decode()


def _redact(text: str) -> str:
    text = tokens.redact(text)
    if any(sign in text for sign in _AT_SIGNS):
        text = _EMAIL_IN_ANY_SCRIPT.sub(EMAIL, _EMAIL.sub(EMAIL, text))
    if _SEVEN_DIGITS.search(text):
        if _IBAN_START.search(text):
            text = _IBAN.sub(_iban, text)
        text = _CARD.sub(_card, text)
        text = phones.redact(text, PHONE)
    return text


def _card(found: re.Match[str]) -> str:
    digits = "".join(str(int(c)) for c in found[0] if c.isdigit())
    return CARD if _is_card(digits) else found[0]


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and luhn.is_valid(digits)


def _iban(found: re.Match[str]) -> str:
    """Replace the longest beginning that is an IBAN: words that follow one look like a part."""
    text = found[0]
    for end in range(len(text), 14, -1):
        inside_word = text[end - 1] in " \u00a0-" or text[end : end + 1].isalnum()
        # Lists of banks, which a country's own check goes by, are never complete.
        if not inside_word and iban.is_valid(text[:end].replace("\u00a0", ""), check_country=False):
            return IBAN + text[end:]
    return text
