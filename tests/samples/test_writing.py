from __future__ import annotations

import numpy as np
import pytest

from samples import parameters
from samples.pool import Prompt
from samples.writing import revealing, tokens, written


def many(prompt: Prompt) -> list[str]:
    rng = np.random.default_rng(1)
    return [written(prompt, rng) for _ in range(20_000)]


def share(found: list[str], test: object) -> float:
    return sum(map(test, found)) / len(found)  # type: ignore[arg-type]


def test_people_write_as_measured() -> None:
    found = many(Prompt("Where is My card?", "en", "i", "a"))
    assert share(found, str.islower) == pytest.approx(parameters.LOWER_CASE, abs=0.01)
    assert share(found, lambda t: not t.endswith("?")) == pytest.approx(
        parameters.NO_FINAL_MARK, abs=0.01
    )
    assert share(found, lambda t: "  " in t) == pytest.approx(parameters.DOUBLE_SPACE, abs=0.01)
    assert share(found, lambda t: len(t) > 20) == pytest.approx(parameters.GREETING, abs=0.01)


def test_buttons_are_mostly_pressed() -> None:
    found = many(Prompt("Where is My card?", "en", "i", "a", button=True))
    assert share(found, lambda t: t == "Where is My card?") > 0.95


def test_code_keeps_its_form_and_chinese_its_case() -> None:
    code = "Review:\n\n```go\nX  := 1.\n```"
    assert all(text.endswith(code) for text in many(Prompt(code, "en", "i", "a")))
    chinese = many(Prompt("用 API 怎么查。", "zh", "i", "a"))
    assert all("用 API 怎么查" in text for text in chinese)
    assert len(set(chinese)) > 2


def test_revealing_appends_a_sentence() -> None:
    text = revealing("Help.", "de", "email", np.random.default_rng(1))
    assert text.startswith("Help. ")
    assert "@example." in text


def test_token_estimates() -> None:
    english = "How do I block my card after it was stolen in Berlin?"
    assert tokens(english, "en") == pytest.approx(13, abs=2)
    assert tokens("我的信用卡在上海丢了应该怎么办", "zh") == pytest.approx(25, abs=4)
    assert tokens("Wie sperre ich meine Karte, nachdem sie in München gestohlen wurde?", "de") == (
        pytest.approx(25, abs=2)
    )
