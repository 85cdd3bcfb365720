from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from samples import texts
from samples.personal import KINDS, luhn_digit, value

SHAPES = {
    "email": re.compile(r"[a-z.0-9]+@example\.(com|net|org)"),
    "phone": re.compile(
        r"\+1 212 555 01\d\d|\(415\) 555-01\d\d|(\+44 20|020) 7946 0\d{3}"
        r"|\+49 30 23125 \d{3}|01 99 00 \d\d \d\d"
    ),
    "card": re.compile(r"\d{4}([ -]?\d{4}){3}"),
    "iban": re.compile(r"[A-Z]{2}\d{2}[A-Z0-9 ]{11,30}"),
    "api_key": re.compile(r"(sk-|sk-proj-|ghp_|hf_)[A-Za-z0-9]{34,64}"),
}


def passes_luhn(number: str) -> bool:
    digits = [int(d) for d in number if d.isdigit()][::-1]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def passes_mod_97(iban: str) -> bool:
    plain = iban.replace(" ", "")
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


def test_check_digit_of_a_known_card() -> None:
    assert luhn_digit("424242424242424") == "2"
    assert luhn_digit("37828224631000") == "5"


@pytest.mark.parametrize("kind", KINDS)
def test_values_have_the_shape_and_the_check_digits_of_their_kind(kind: str) -> None:
    rng = np.random.default_rng(3)
    found = {value(kind, rng) for _ in range(300)}
    assert len(found) > 10
    for text in found:
        assert SHAPES[kind].fullmatch(text), text
        if kind == "card":
            assert passes_luhn(text)
        if kind == "iban":
            assert passes_mod_97(text)


def test_flagged_rows_hold_what_the_flag_says(asked: list[dict[str, Any]]) -> None:
    flagged = [row for row in asked if "personal_looking" in row["extra"]]
    assert len({row["extra"]["personal_looking"] for row in flagged}) >= 4
    for row in flagged:
        said = [m["content"] for m in row["messages"] or ()] + [row["prompt"]]
        assert any(SHAPES[row["extra"]["personal_looking"]].search(text) for text in said)


def test_no_other_row_holds_any(asked: list[dict[str, Any]]) -> None:
    for row in asked:
        if "personal_looking" in row["extra"]:
            continue
        said = [m["content"] for m in row["messages"] or ()]
        for text in [*said, row["prompt"], row["response"] or "", row["system_prompt"]]:
            if not text.startswith("Current time"):
                assert not any(shape.search(text) for shape in SHAPES.values()), text


def test_every_language_can_give_every_kind_away() -> None:
    common = texts.table("common")
    for kind in KINDS:
        assert set(common["personal"][kind]) == set(common["languages"])
        for sentences in common["personal"][kind].values():
            assert all(sentence.count("{value}") == 1 for sentence in sentences)
