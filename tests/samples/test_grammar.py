from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from samples.grammar import Filling

SLOTS: dict[str, list[Any]] = {
    "city": ["York", "Cork"],
    "snippet": [{"text": "<<fn>>(<<n>>); <<fn>>()", "lang": "Go", "pages": ["a", "b"]}],
}
NAMES = {"fn": ["run", "stop"], "n": ["1", "2"]}


def filling(seed: int) -> Filling:
    return Filling(SLOTS, {"city": "your city"}, NAMES, np.random.default_rng(seed))


def test_wordings_and_values_are_chosen() -> None:
    found = {filling(seed).ask("[I am|We are] in {city}[ now|]?") for seed in range(200)}
    assert found == {
        f"{who} in {city}{end}?"
        for who in ("I am", "We are")
        for city in ("York", "Cork")
        for end in (" now", "")
    }


def test_answers_use_the_questions_values_or_plain_words() -> None:
    one = filling(1)
    city = one.ask("To {city}?").split()[1].rstrip("?")
    assert one.answer("Yes, {city}.") == f"Yes, {city}."
    assert filling(1).answer("Yes, {city}.") == "Yes, your city."


def test_a_snippet_brings_its_language_and_pages_and_names_agree() -> None:
    one = filling(3)
    text = one.ask("{lang}: {snippet}")
    assert text.startswith("Go: ")
    name = text[4:].split("(")[0]
    assert text.count(name) == 2
    assert one.pages == ["a", "b"]


def test_brackets_without_a_choice_and_inserted_braces_are_left_alone() -> None:
    one = Filling({"code": ["{x} [y|z]"]}, {}, {}, np.random.default_rng(1))
    assert one.ask("see [1]: {code}") == "see [1]: {x} [y|z]"


def test_an_unknown_slot_is_an_error() -> None:
    with pytest.raises(KeyError):
        filling(1).ask("{town}")
