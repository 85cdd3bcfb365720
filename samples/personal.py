"""Personal-looking data that is nobody's: reserved domains and numbers, test cards, made-up keys.

- E-mail: `example.com`, `.net` and `.org` (RFC 2606).
- Phone: numbers set aside for fiction (US 555-01xx; Ofcom 020 7946 0xxx; Bundesnetzagentur
  030 23125 xxx; Arcep 01 99 00 xx xx).
- Cards: generated in the ranges that payment providers publish for tests, with a valid check digit.
- IBAN: the examples of the ISO 13616 registry, with valid check digits.
- API keys: random characters behind well-known prefixes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samples.pool import pick

if TYPE_CHECKING:
    import numpy as np

KINDS = ("email", "phone", "card", "iban", "api_key")

_NAMES = ("anna", "ben", "chloe", "david", "elif", "frank", "grace", "hugo", "ines", "jun", "kira")
_SURNAMES = ("miller", "schmidt", "dubois", "garcia", "tanaka", "li", "novak", "rossi", "okafor")
_DOMAINS = ("example.com", "example.net", "example.org")
_TEST_CARDS = ("424242", "400005", "555555", "222300", "510510", "601111")
_IBANS = (
    "DE89 3704 0044 0532 0130 00",
    "GB29 NWBK 6016 1331 9268 19",
    "FR14 2004 1010 0505 0001 3M02 606",
    "ES91 2100 0418 4502 0005 1332",
    "NL91 ABNA 0417 1643 00",
    "AT61 1904 3002 3457 3201",
    "CH93 0076 2011 6238 5295 7",
    "BE68 5390 0754 7034",
)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def value(kind: str, rng: np.random.Generator) -> str:
    """Return a made-up value of that kind.

    Raises:
        KeyError: when the kind is not one of `KINDS`.
    """
    return {"email": _email, "phone": _phone, "card": _card, "iban": _iban, "api_key": _api_key}[
        kind
    ](rng)


def luhn_digit(digits: str) -> str:
    """Return the check digit that makes `digits` plus itself pass the Luhn test."""
    total = 0
    for i, digit in enumerate(reversed(digits)):
        n = int(digit) * (2 if i % 2 == 0 else 1)
        total += n - 9 if n > 9 else n
    return str(-total % 10)


def _email(rng: np.random.Generator) -> str:
    number = str(int(rng.random() * 90) + 10) if rng.random() < 0.5 else ""
    return f"{pick(_NAMES, rng)}.{pick(_SURNAMES, rng)}{number}@{pick(_DOMAINS, rng)}"


def _phone(rng: np.random.Generator) -> str:
    two, three = f"{int(rng.random() * 100):02d}", f"{int(rng.random() * 1000):03d}"
    other = f"{int(rng.random() * 100):02d}"
    return pick(
        (
            f"+1 212 555 01{two}",
            f"(415) 555-01{two}",
            f"+44 20 7946 0{three}",
            f"020 7946 0{three}",
            f"+49 30 23125 {three}",
            f"01 99 00 {two} {other}",
        ),
        rng,
    )


def _card(rng: np.random.Generator) -> str:
    digits = pick(_TEST_CARDS, rng) + f"{int(rng.random() * 10**9):09d}"
    number = digits + luhn_digit(digits)
    separator = pick((" ", "", "-"), rng)
    return separator.join(number[i : i + 4] for i in range(0, 16, 4))


def _iban(rng: np.random.Generator) -> str:
    iban = pick(_IBANS, rng)
    return iban if rng.random() < 0.5 else iban.replace(" ", "")


def _api_key(rng: np.random.Generator) -> str:
    prefix, size = pick((("sk-", 48), ("sk-proj-", 64), ("ghp_", 36), ("hf_", 34)), rng)
    return prefix + "".join(pick(_LETTERS, rng) for _ in range(size))
