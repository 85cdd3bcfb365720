"""How people write: the small differences between two requests that mean the same."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from samples import parameters as p
from samples.personal import value
from samples.pool import pick
from samples.texts import table

if TYPE_CHECKING:
    import numpy as np

    from samples.pool import Prompt

_MARKS = ".?!\u3002\uff1f\uff01"
"""Final marks, the full-width ones of Chinese and Japanese included."""
_WIDE = re.compile("[\u2e80-\U0010ffff]")
_NO_CASE = ("zh", "ja", "ar")


def written(prompt: Prompt, rng: np.random.Generator) -> str:
    """Return the prompt as one person writes it: mostly unchanged, a button's almost always."""
    if prompt.button and rng.random() >= p.BUTTON_TYPED:
        return prompt.text
    text, code = prompt.text, "```" in prompt.text
    if not code and prompt.locale not in _NO_CASE:
        if rng.random() < p.LOWER_CASE:
            text = text.lower()
        if rng.random() < p.DOUBLE_SPACE:
            text = text.replace(" ", "  ", 1)
    if not code and rng.random() < p.NO_FINAL_MARK:
        text = text.rstrip(_MARKS + " ")
    if rng.random() < p.GREETING:
        text = pick(table("common")["greetings"][prompt.locale], rng) + text
    return text


def revealing(text: str, locale: str, kind: str, rng: np.random.Generator) -> str:
    """Return the text followed by a sentence that gives away personal-looking data."""
    sentence = pick(table("common")["personal"][kind][locale], rng)
    return f"{text} {sentence.format(value=value(kind, rng))}"


@lru_cache(maxsize=65_536)
def tokens(text: str, locale: str) -> int:
    """Estimate the tokens of a text.

    Calibrated with the SmolLM2 tokenizer on this log's own texts, see the README.
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    per_token = 3.0 if "```" in text else _LETTERS_A_TOKEN.get(locale, 2.65)
    return max(1, round(wide / _WIDE_A_TOKEN + (len(text) - wide) / per_token))


_WIDE_A_TOKEN = 0.56
_LETTERS_A_TOKEN = {"en": 4.45}
