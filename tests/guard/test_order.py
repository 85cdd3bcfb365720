"""What is said in which order: two texts of the same words may ask for opposite things."""

from __future__ import annotations

import time

import pytest

from warmup_lib.guard import compatible, tag
from warmup_lib.guard.order import in_order, relations


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Flights from Paris to Rome", "Flights from Rome to Paris"),
        ("Move it from savings to checking", "Move it from checking to savings"),
        ("Move it to my savings from my cash", "Move it to my cash from my savings"),
        ("Convert dollars to euros", "Convert euros to dollars"),
        ("How do I convert USD to EUR?", "How do I convert EUR to USD?"),
        ("Does John owe Mary money?", "Does Mary owe John money?"),
        ("Is 3 greater than 5?", "Is 5 greater than 3?"),
        ("Delete row 1 and keep row 2", "Delete row 2 and keep row 1"),
        ("What is 8 / 2?", "What is 8 * 2?"),
        ("What is 8+2?", "What is 8*2?"),
        ("List primes under 100", "List primes over 100"),
        ("less than $50", "more than $50"),
        ("Explain World War I", "Explain World War II"),
        ("东京到大阪", "大阪到东京"),
    ],
)
def test_the_order_of_things_keeps_questions_apart(one: str, other: str) -> None:
    assert not compatible(one, other)
    assert compatible(one, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Flights from Paris to Rome", "Flights to Rome from Paris"),
        ("Move it from my savings to checking", "from savings to my checking"),
        ("Yesterday I paid", "yesterday i paid"),
        ("Put it under my name", "Put it in my name"),
        ("more than 50 items", "50 items"),
        ("What is 8 * 2?", "8*2"),
    ],
)
def test_wordings_of_one_relation_stay_together(one: str, other: str) -> None:
    assert compatible(one, other)


def test_one_thing_has_no_order() -> None:
    assert in_order("", ["Paris", "or", "Paris"], {"@paris"}) == set()
    assert in_order("", ["Rome", "Paris"], {"@paris", "@rome"}) == {"<@rome<@paris"}
    assert relations("Where is my card?") == set()


@pytest.mark.parametrize(
    "part", ["1.1.", "a.", "usr/lib/", "Alice, ", "Ab ", "„a ", "«a ", "「a", "eyJh-b.", "from a "]
)
def test_a_long_text_takes_no_square_of_time(part: str) -> None:
    text = part * (200_000 // len(part))
    begun = time.process_time()
    assert len(tag(text)) == 16
    # Where it took the square, it took half a minute.
    assert time.process_time() - begun < 5
