"""What is said in which order: two texts of the same words may ask for opposite things."""

from __future__ import annotations

import time

import pytest

from warmup_lib.guard import compatible, tag
from warmup_lib.guard.order import in_order, kin_in_order, relations


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
        ("convert kilometers to miles", "convert miles to kilometers"),
        ("celsius to fahrenheit", "fahrenheit to celsius"),
        ("How many ounces in a pound?", "How many pounds in an ounce?"),
        ("Kilometer in Meilen umrechnen", "Meilen in Kilometer umrechnen"),
        ("translate it to French", "translate it from French"),
        ("is tom older than jerry", "is jerry older than tom"),
        ("a cat is more fun than a dog", "a dog is more fun than a cat"),
        ("is a cat less loud than a dog", "is a dog less loud than a cat"),
        ("ist tom größer als jerry", "ist jerry größer als tom"),
        ("Wie komme ich von A nach B", "Wie komme ich von B nach A"),
        ("in 2 weeks", "2 weeks ago"),
        ("in 2 Wochen", "vor 2 Wochen"),
        ("en 2 semanas", "hace 2 semanas"),
        ("dans 2 semaines", "il y a 2 semaines"),
        ("dans un an", "il y a un an"),
        ("en un año", "hace un año"),
        ("tra 2 settimane", "2 settimane fa"),
        ("2周后", "2周前"),
        ("What is 6 \u00d7 2?", "What is 6 \u00f7 2?"),
        ("What is 7 plus 2?", "What is 7 minus 2?"),
        ("seven times two", "seven divided by two"),
        ("the sum of 3 and 4", "the product of 3 and 4"),
        ("plus de 20 euros", "moins de 20 euros"),
        ("más de 20 euros", "menos de 20 euros"),
        ("mehr als 20 Euro", "weniger als 20 Euro"),
        ("du hast mehr als 20", "du hast weniger als 20"),
        ("5 or more", "5 or less"),
        ("I pay too much", "I pay too little"),
        ("five above zero", "five below zero"),
        ("until 5pm", "from 5pm"),
        ("is x > y", "is x < y"),
        ("Is answer A right?", "Is answer B right?"),
        ("vitamin c", "vitamin d"),
        ("is it dairy-free", "is it dairy"),
        ("I pay Anna and Greta pays me", "I pay Greta and Anna pays me"),
        ("Are Paris and Rome 3 and 5 km off", "Are Rome and Paris 3 and 5 km off"),
        ("From Visa and Mastercard", "From Mastercard and Visa"),
        ("did my mother pay my father", "did my father pay my mother"),
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
        ("2 weeks ago", "two weeks ago"),
        ("8 x 2", "eight times two"),
        ("convert kilometers to miles", "from km to miles"),
        ("Visa or Mastercard", "Mastercard or Visa"),
        ("Can I get a Visa or a Mastercard?", "Can I get a Mastercard or a Visa?"),
        ("Call Anna or Greta", "Call Greta or Anna"),
        ("between Paris and Rome", "between Rome and Paris"),
        ("moins de 20 euros", "less than 20 euros"),
        ("au moins 20 euros", "plus de 20 euros"),
        ("my mom and dad", "my dad and mom"),
        ("a transfer from Germany", "a German transfer"),
        ("answer a question", "answer my question"),
        ("It is faster than usual", "It is faster than expected"),
    ],
)
def test_wordings_of_one_relation_stay_together(one: str, other: str) -> None:
    assert compatible(one, other)


def test_one_thing_has_no_order() -> None:
    assert in_order("", ["Paris", "or", "Paris"], {"@paris"}) == set()
    assert in_order("", ["Rome", "or", "Paris"], {"@paris", "@rome"}) == set()
    three = {"@paris", "@rome", "@visa"}
    assert in_order("", ["Rome", "or", "Paris", "by", "Visa"], three) == {"<@paris&@rome<@visa"}
    assert kin_in_order(["mom", "pays", "dad"], {"-mother", "-father"}) == {"<-mother<-father"}
    assert in_order("", ["Rome", "Paris"], {"@paris", "@rome"}) == {"<@rome<@paris"}
    assert relations("Where is my card?", "where is my card?", ["Where", "is"]) == set()


@pytest.mark.parametrize(
    "part",
    [
        *("1.1.", "a.", "usr/lib/", "Alice, ", "Ab ", "„a ", "«a ", "「a", "eyJh-b.", "from a "),
        *(
            "一",
            "1",
            "1,000,",
            "one ",
            "minus 1 ",
            "-1",
            "a'",
            "Is a ",
            "is a older than ",
            "km in ",
        ),
        *("```'", '```"', "a < ", "1 x ", "Visa or ", "5 degrees ", "A ", "from a to "),
    ],
)
def test_a_long_text_takes_no_square_of_time(part: str) -> None:
    text = part * (200_000 // len(part))
    begun = time.process_time()
    assert len(tag(text)) == 16
    # Where it took the square, it took half a minute.
    assert time.process_time() - begun < 5
