"""Numbers count with their unit, in digits, in Chinese numerals and as small words."""

from __future__ import annotations

import pytest

from warmup_lib.guard import signature


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("十", "10"),
        ("二十三", "23"),
        ("一万两千", "12000"),
        ("三百零五", "305"),
        ("两亿", "200000000"),
        ("三天", "3d"),
        ("一个月", "1mo"),
        ("15分钟", "15min"),
        ("two cards", "2"),
        ("drei Karten", "3"),
        ("in twenty days", "20d"),
        ("6 am and 6pm", "6am 6pm"),
        ("5-day week", "5d"),
        ("10 % of 2 semaines", "10% 2w"),
    ],
)
def test_numbers_and_their_units(text: str, expected: str) -> None:
    assert signature(text).split("|")[0] == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("return within 14 days", "return within 14 weeks"),
        ("wake me at 6 am", "wake me at 6 pm"),
        ("for two people", "for four people"),
        ("3天内到货", "3周内到货"),
        ("a 20% discount", "a 20 euro discount"),
    ],
)
def test_another_number_or_unit_is_another_signature(a: str, b: str) -> None:
    assert signature(a) != signature(b)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sixty-one pounds", "61"),
        ("seventy two pounds", "72"),
        ("a hundred and fifty", "150"),
        ("two hundred", "200"),
        ("one hundred", "100"),
        ("20 one day", "20"),
    ],
)
def test_english_numbers_of_several_words_are_one(text: str, expected: str) -> None:
    assert signature(text).split("|")[0] == expected
