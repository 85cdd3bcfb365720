"""How much personal data redaction finds, and how much of what looks like it it leaves."""

from __future__ import annotations

import base64
import csv
import itertools
import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType
from stdnum import luhn
from stdnum.iso7064 import mod_97_10

from warmup_lib.ingest.redact import redact

FRAMES = (
    "{}",
    "please use {} for this",
    "My details: {}.",
    "Is {} right?",
    "I wrote to you yesterday ({}), nobody answered",
    "ich habe {} angegeben, stimmt das?",
    "mon contact est {}, merci",
    "请联系 {} 谢谢",
    "我昨天写的是{}你们还没有回复我请尽快处理这个问题因为我已经等了很久了真的很着急谢谢",
    "これは{}です",
    'sent "{}", twice',
    "first line\n{}\nlast line",
)
_REGIONS = ("US", "GB", "DE", "FR", "IT", "NL", "CH", "CN", "IN", "JP", "AU", "BR", "TR", "ES")
_IBANS = {
    "DE": "n" * 18,
    "GB": "aaaa" + "n" * 14,
    "FR": "n" * 23,
    "NL": "aaaa" + "n" * 10,
    "IT": "a" + "n" * 22,
    "ES": "n" * 20,
    "CH": "n" * 17,
    "PL": "n" * 24,
    "BE": "n" * 12,
    "NO": "n" * 11,
}


def _text(draw: random.Random, length: int, alphabet: str) -> str:
    return "".join(draw.choice(alphabet) for _ in range(length))


def emails(draw: random.Random) -> Iterator[str]:
    name = string.ascii_lowercase
    while True:
        local = draw.choice(
            (
                _text(draw, 8, name),
                f"{_text(draw, 4, name)}.{_text(draw, 6, name)}",
                f"{_text(draw, 5, name)}+{_text(draw, 3, name)}",
                f"{_text(draw, 3, name)}_{draw.randrange(100)}",
                "José." + _text(draw, 5, name),
            )
        )
        domain = draw.choice(("example.com", "mail.example.co.uk", "t-online.de", "bücher.de"))
        yield draw.choice((f"{local}@{domain}", f"{local}@{domain}".upper()))


def cards(draw: random.Random) -> Iterator[str]:
    shapes = (
        ("4", 16),
        ("51", 16),
        ("2221", 16),
        ("34", 15),
        ("6011", 16),
        ("62", 16),
        ("3528", 16),
    )
    while True:
        start, length = draw.choice(shapes)
        body = start + _text(draw, length - len(start) - 1, string.digits)
        number = body + luhn.calc_check_digit(body)
        gap = draw.choice(("", " ", "-"))
        cuts = (4, 10) if length == 15 else (4, 8, 12)
        edges = (0, *cuts, length)
        yield gap.join(number[a:b] for a, b in itertools.pairwise(edges))


def ibans(draw: random.Random) -> Iterator[str]:
    alphabets = {"n": string.digits, "a": string.ascii_uppercase}
    while True:
        country = draw.choice(tuple(_IBANS))
        bban = "".join(draw.choice(alphabets[c]) for c in _IBANS[country])
        check = mod_97_10.calc_check_digits(f"{bban}{country}")
        number = f"{country}{check}{bban}"
        spaced = " ".join(number[i : i + 4] for i in range(0, len(number), 4))
        yield draw.choice((number, spaced, number.lower()))


def _phone(draw: random.Random, regions: tuple[str, ...]) -> phonenumbers.PhoneNumber:
    """Return a number that is valid in its country, its last five digits drawn."""
    while True:
        kind = draw.choice((PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE))
        number = phonenumbers.example_number_for_type(draw.choice(regions), kind)
        number.national_number += draw.randrange(10**5) - number.national_number % 10**5
        if phonenumbers.is_valid_number(number):
            return number


def phones(draw: random.Random) -> Iterator[str]:
    """Numbers with their country code, as people write them."""
    while True:
        number = _phone(draw, _REGIONS)
        written = phonenumbers.format_number(
            number, draw.choice((PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.E164))
        )
        yield draw.choice((written, written.replace(" ", "-"), "00" + written[1:]))


def national_phones(draw: random.Random) -> Iterator[str]:
    """Numbers as written inside their country, of countries where that has a telling form."""
    while True:
        number = _phone(draw, ("US", "GB", "DE", "FR", "JP", "AU"))
        yield phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)


def chinese_mobiles(draw: random.Random) -> Iterator[str]:
    while True:
        digits = "1" + draw.choice("3589") + _text(draw, 9, string.digits)
        gap = draw.choice(("", " ", "-"))
        yield gap.join((digits[:3], digits[3:7], digits[7:]))


def named_phones(draw: random.Random) -> Iterator[str]:
    """Bare digits after a word that says what they are."""
    words = (
        "my phone number is ",
        "tel: ",
        "Mobile ",
        "call me at ",
        "Handynummer: ",
        "电话",
        "WhatsApp ",
    )
    while True:
        yield draw.choice(words) + str(draw.randrange(10**6, 10 ** draw.randint(8, 11)))


def secrets(draw: random.Random) -> Iterator[str]:
    word = string.ascii_letters + string.digits
    make: tuple[Callable[[], str], ...] = (
        lambda: "sk-" + _text(draw, 48, word),
        lambda: "sk-proj-" + _text(draw, 40, word + "_-"),
        lambda: "sk-ant-api03-" + _text(draw, 80, word + "_-"),
        lambda: "sk_live_" + _text(draw, 24, word),
        lambda: "AKIA" + _text(draw, 16, string.ascii_uppercase + string.digits),
        lambda: draw.choice(("ghp_", "gho_", "ghs_")) + _text(draw, 36, word),
        lambda: "github_pat_" + _text(draw, 22, word) + "_" + _text(draw, 59, word),
        lambda: "glpat-" + _text(draw, 20, word),
        lambda: "xoxb-" + _text(draw, 12, string.digits) + "-" + _text(draw, 24, word),
        lambda: "AIza" + _text(draw, 35, word),
        lambda: "hf_" + _text(draw, 34, word),
        lambda: "Bearer " + _text(draw, 40, word + "_-"),
        lambda: "password: " + _text(draw, 11, word) + "7x",
        lambda: "API_KEY=" + _text(draw, 30, word) + "1a",
        lambda: "AWS_SECRET_ACCESS_KEY=" + _text(draw, 38, word + "/+") + "9z",
        lambda: f"postgres://app:{_text(draw, 12, word)}@db.internal/main",
        lambda: ".".join(
            base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
            for part in ('{"alg":"HS256"}', f'{{"sub":"{draw.random()}"}}', _text(draw, 32, word))
        ),
        lambda: (
            "-----BEGIN RSA PRIVATE KEY-----\n"
            + "\n".join(_text(draw, 64, word + "+/") for _ in range(12))
            + "\n-----END RSA PRIVATE KEY-----"
        ),
    )
    while True:
        yield draw.choice(make)()


def lookalikes(draw: random.Random) -> Iterator[str]:
    """Numbers and ids that a support log is full of and that identify no person."""
    digits = string.digits
    make: tuple[Callable[[], str], ...] = (
        lambda: f"order {draw.randrange(10**7, 10**10)}",
        lambda: f"order number {draw.randrange(10**11, 10**12)}",
        lambda: (
            f"order #{draw.randrange(100, 999)}-{_text(draw, 7, digits)}-{_text(draw, 7, digits)}"
        ),
        lambda: f"invoice INV-2026-{draw.randrange(10**5):06d}",
        lambda: f"ticket {draw.randrange(10**6)}",
        lambda: (
            f"2026-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d} {draw.randint(0, 23):02d}:30"
        ),
        lambda: f"2026-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}T10:00:00.123456Z",
        lambda: (
            f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.2026 {draw.randint(10, 23)}:15"
        ),
        lambda: f"{draw.randint(1, 28):02d}/{draw.randint(1, 12):02d}/2026 10:30",
        lambda: str(draw.randrange(1_760_000_000, 1_780_000_000)),
        lambda: str(draw.randrange(1_760_000_000_000, 1_780_000_000_000)),
        lambda: str(draw.randrange(1_760_000_000_000_000, 1_780_000_000_000_000)),
        lambda: ".".join(str(draw.randrange(256)) for _ in range(4)),
        lambda: f"version {draw.randrange(20)}.{draw.randrange(100)}.{draw.randrange(1000)}",
        lambda: f"{draw.randrange(10**6):,} and {draw.randrange(10**9):,} EUR",
        lambda: f"{draw.random() * 10**6:.6f}",
        lambda: f"{draw.getrandbits(128):032x}",
        lambda: "-".join(f"{draw.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12)),
        lambda: f"ISBN 978-3-16-{_text(draw, 6, digits)}-{draw.randrange(10)}",
        lambda: f"tracking 1Z{_text(draw, 16, digits)}",
        lambda: f"pages {draw.randrange(100)}-{draw.randrange(100, 1000)}",
        lambda: f"sk-learn version 1.{draw.randrange(9)} and scikit-learn-extra-package",
        lambda: "what is a bearer token, and where do I find my api key?",
        lambda: "password must contain a number and a special character",
        lambda: f"react@{draw.randrange(20)}.2.0 and @types/node",
    )
    while True:
        yield draw.choice(make)()


@pytest.mark.parametrize(
    ("make", "placeholder"),
    [
        (emails, "<EMAIL>"),
        (cards, "<CARD>"),
        (ibans, "<IBAN>"),
        (phones, "<PHONE>"),
        (national_phones, "<PHONE>"),
        (chinese_mobiles, "<PHONE>"),
    ],
)
def test_all_of_it_is_found_and_nothing_else(
    make: Callable[[random.Random], Iterator[str]], placeholder: str
) -> None:
    draw = random.Random(11)
    personal = make(draw)
    for frame in FRAMES * 100:
        assert redact(frame.format(next(personal))) == frame.format(placeholder)


@pytest.mark.parametrize(
    ("make", "placeholder"), [(named_phones, "<PHONE>"), (secrets, "<SECRET>")]
)
def test_what_a_word_before_it_tells_is_found(
    make: Callable[[random.Random], Iterator[str]], placeholder: str
) -> None:
    """The word before it stays, so only what must be gone is looked at."""
    draw = random.Random(12)
    personal = make(draw)
    for frame in FRAMES * 100:
        text = next(personal)
        clean = redact(frame.format(text))
        assert placeholder in clean
        assert re.split(r"[ :=]|电话", text)[-1] not in clean


def test_order_numbers_dates_and_ids_stay() -> None:
    draw = random.Random(13)
    made = lookalikes(draw)
    texts = [draw.choice(FRAMES).format(next(made)) for _ in range(5000)]
    assert [t for t in texts if redact(t) != t] == []


@pytest.mark.realdata
def test_real_questions_stay(real_data: Path) -> None:
    texts = []
    for name in ("train.csv", "test.csv"):
        with (real_data / "banking77" / name).open(encoding="utf-8", newline="") as rows:
            texts += [row["text"] for row in csv.DictReader(rows)]
    assert len(texts) == 13_083
    assert [t for t in texts if redact(t) != t] == []
