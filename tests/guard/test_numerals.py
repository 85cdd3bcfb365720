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
    ("text", "expected"),
    [
        ("零零七", "7"),
        ("零", "0"),
        ("-5 C, \u22125 °C, minus five degrees celsius", "-5c -5c -5c"),
        ("minus 5, but 7 minus 2", "-5 7 2"),
        ("3-5, 2026-03-14 and x-1", "3-5 2026-03-14 1"),
        ("al menos 5, menos 5, au moins 5, plus ou moins 5", "5 -5 5 5"),
        ("5 a.m. and 5 P.M.", "5am 5pm"),
        ("100 km/h or 20 and/or", "100km/h 20"),
        ("2 million and 3 billion", "2 1000000 3 1000000000"),
        ("2 Millionen, 2 Milliarden, 2 Billionen", "2 1000000 2 1,000,000,000 2 1000000000000"),
        ("1,000,000 and 1.000.000", "1000000 1.000.000"),
        ("is it 1,000.50", "1000.50"),
        ("1,000 kg", "1,000kg"),
        ("order one card, one week, this one, one of them", "1 1w"),
        ("with one card, with one week", "1w"),
    ],
)
def test_signs_times_thousands_and_one(text: str, expected: str) -> None:
    assert signature(text).split("|")[0] == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("I want one card", "I want 1 card"),
        ("one week", "1 week"),
        ("It costs 1,000 euros, is it much", "It costs 1000 euros, is it much"),
        ("the 2nd card", "the second card"),
        ("My 3rd try", "my third try"),
        ("on January 5th", "on January 5"),
        ("at 5 a.m.", "at 5am"),
        ("5 µg", "5 mcg"),
        ("5 °C", "5 degrees Celsius"),
        ("is 5 degrees Celsius cold", "is 5 degrees celsius cold"),
        ("a 5 kW engine", "a 5kw engine"),
        ("10 milliseconds", "10 ms"),
    ],
)
def test_one_number_is_written_in_several_ways(a: str, b: str) -> None:
    assert signature(a) == signature(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("is -5 C safe", "is 5 C safe"),
        ("is \u22125 C safe", "is 5 C safe"),
        ("minus 5", "5"),
        ("-5 C", "-5 F"),
        ("3 million rows", "3 billion rows"),
        ("a million rows", "a thousand rows"),
        ("2 Millionen", "2 Milliarden"),
        ("5k users", "5M users"),
        ("5 mg of it", "5 mcg of it"),
        ("5 mg of it", "5 g of it"),
        ("10 ms", "10 s"),
        ("120 V", "120 W"),
        ("5 kW", "5 MW"),
        ("5 feet", "5 miles"),
        ("30 psi", "30 bar"),
        ("5 KB", "5 MB"),
        ("5 GB", "5 TB"),
        ("5 degrees celsius", "5 degrees fahrenheit"),
        ("at 5 a.m.", "at 5 p.m."),
        ("3 nights", "3 days"),
        ("2 cards", "my 2nd card"),
        ("one user", "zero users"),
        ("f(1,200) is what", "f(1200) is what"),
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
        ("20 one day", "20 1d"),
    ],
)
def test_english_numbers_of_several_words_are_one(text: str, expected: str) -> None:
    assert signature(text).split("|")[0] == expected
