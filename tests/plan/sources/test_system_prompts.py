"""A/B tests are compared fairly: among their own arms, on enough requests, by what is sure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.plan import building
from tests.plan.sources.material import heads_of, material
from warmup_lib.config import Config
from warmup_lib.plan.sources.scores import SCHEMA
from warmup_lib.plan.sources.system_prompts import SystemPrompts, best

DAY = "2026-03-10"


def scored(
    head: str, arm: str, values: list[float], *, day: str = DAY, **more: Any
) -> dict[str, Any]:
    micro = [round(value * 1_000_000) for value in values]
    return {
        "tenant": "acme",
        "model": "small",
        "locale": "en",
        "head_digest": head,
        "ab_arm": arm,
        "day": day,
        "requests": len(micro),
        "score_micro": str(sum(micro)),
        "square_micro2": str(sum(m * m for m in micro)),
    } | more


def around(mean: float, count: int) -> list[float]:
    """So many values of this mean, with a standard deviation of about 0.1."""
    return [mean + (0.1 if n % 2 else -0.1) for n in range(count)]


def ranked(*rows: dict[str, Any], requests: int = 100) -> list[str]:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    return [head for _, head in best(table, requests)]


def test_the_better_mean_wins_on_equal_counts() -> None:
    rows = [scored(h, h, around(m, 200)) for h, m in (("a", 0.5), ("b", 0.7), ("c", 0.6))]
    assert ranked(*rows) == ["b", "c", "a"]


def test_a_lucky_few_do_not_beat_a_sure_mean() -> None:
    sure = scored("sure", "x", around(0.70, 4000))
    lucky = scored("lucky", "y", [-0.5, 2.0] * 60)  # mean 0.75, but anything is possible
    other = scored("other", "z", around(0.6, 4000))
    assert ranked(sure, lucky, other)[0] == "sure"
    # By the definition: mean - 1.96 s / sqrt(n).
    values = np.array([-0.5, 2.0] * 60)
    lower = values.mean() - 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    assert lower < 0.6
    assert ranked(sure, lucky, other) == ["sure", "other", "lucky"]


def test_a_prompt_scored_too_seldom_is_not_compared() -> None:
    rows = [scored("a", "x", around(0.5, 200)), scored("b", "y", around(0.9, 99))]
    assert ranked(*rows) == []  # one is left, and it has no opponent
    assert ranked(*rows, requests=99) == ["b", "a"]


def test_only_days_with_several_arms_count() -> None:
    rows = [
        scored("a", "x", around(0.6, 200)),
        scored("b", "y", around(0.5, 200)),
        scored("b", "y", around(0.9, 5000), day="2026-03-11"),  # the test was over
    ]
    assert ranked(*rows) == ["a", "b"]


def test_one_language_is_not_compared_with_another() -> None:
    """Everybody scores lower in German; there b is the better one, as a is in English."""
    rows = [
        scored("a-en", "x", around(0.9, 400)),
        scored("b-en", "y", around(0.8, 400)),
        scored("a-de", "x", around(0.3, 400), locale="de"),
        scored("b-de", "y", around(0.5, 400), locale="de"),
    ]
    assert ranked(*rows) == ["b-de", "a-en", "b-en", "a-de"]


def test_tests_of_other_scales_stand_in_one_list() -> None:
    """Beta scores out of 100: its clear winner is not ahead only because its numbers are large."""
    rows = [
        scored("a", "x", around(0.9, 400)),
        scored("b", "y", around(0.5, 400)),
        scored("c", "x", [100 * v for v in around(0.55, 400)], tenant="beta"),
        scored("d", "y", [100 * v for v in around(0.50, 400)], tenant="beta"),
    ]
    assert ranked(*rows) == ["a", "c", "d", "b"]


def test_equal_scores_everywhere_break_ties_by_requests_then_name() -> None:
    rows = [scored(h, h, [0.5] * n) for h, n in (("b", 200), ("a", 200), ("c", 300))]
    assert ranked(*rows) == ["c", "a", "b"]


def test_the_best_three_that_may_be_warmed_are_proposed() -> None:
    names = ["h1", "h2", "h3", "h4", "h5"]
    heads = [building.head(name) for name in names]
    heads[1]["unwarmable"] = "volatile: time"
    scores = [scored(h, h, around(0.9 - 0.1 * n, 200)) for n, h in enumerate(names)]
    made = material(heads=heads, scores=scores)
    assert heads_of(SystemPrompts().propose(made, Config()), made) == ["h1", "h3", "h4"]
    fewer = Config.model_validate({"plan": {"sources": {"system_prompts": {"limit": 1}}}})
    assert heads_of(SystemPrompts().propose(made, fewer), made) == ["h1"]


@pytest.mark.parametrize("scores", [[], [scored("h1", "x", around(0.5, 500))]])
def test_without_a_test_there_is_nothing_to_propose(scores: list[dict[str, Any]]) -> None:
    made = material(heads=[building.head("h1")], scores=scores)
    assert heads_of(SystemPrompts().propose(made, Config()), made) == []
