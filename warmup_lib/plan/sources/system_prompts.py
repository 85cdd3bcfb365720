"""Source `system_prompts`: those that did best in A/B tests.

A test is what one tenant asks one model in one language, on the days on which several arms had
scored requests: a prompt of one language is not compared with another language's, nor the winner
of a test with what came after it. A prompt that was scored too seldom is not compared at all.
What counts is the lower end of its mean's 95 % interval, in standard deviations above the mean of
its test, so that tests of different scales stand in one list.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source
from warmup_lib.tables import MICRO

_LOWER = 1.96

Prompt = tuple[str, str]
"""Tenant and head digest."""


class SystemPrompts(Source):
    """The best few system prompts of all A/B tests."""

    name = "system_prompts"
    layers = ("embeddings", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the best heads that may be warmed."""
        settings = config.plan.sources.system_prompts
        heads = material.heads
        able = heads.append_column("row", pa.array(np.arange(heads.num_rows)))
        able = able.filter(pc.is_null(able["unwarmable"])).select(["tenant", "head_digest", "row"])
        rows = {(h["tenant"], h["head_digest"]): h["row"] for h in able.to_pylist()}
        proposal = material.nothing()
        ranked = [prompt for prompt in best(material.scores, settings.requests) if prompt in rows]
        for prompt in ranked[: settings.limit]:
            proposal.heads[rows[prompt]] = True
        return proposal


def best(scores: pa.Table, requests: int) -> list[Prompt]:
    """Return the system prompts that were compared, best first.

    Args:
        scores: One row a tenant, model, locale, head, arm and day: see
            `warmup_lib.plan.sources.scores`.
        requests: Scored requests that a prompt needs.
    """
    tests: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for row in scores.to_pylist():
        tests[row["tenant"], row["model"], row["locale"] or ""].append(row)
    standing: dict[Prompt, tuple[float, int]] = {}
    for test in tests.values():
        for prompt, place in _standings(_compared(test), requests).items():
            # A prompt that is asked in two languages has the better of two standings.
            standing[prompt] = max(standing.get(prompt, place), place)
    return sorted(standing, key=lambda one: (-standing[one][0], -standing[one][1], one))


def _compared(test: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of the days on which several arms ran."""
    arms: dict[Any, set[str]] = defaultdict(set)
    for row in test:
        arms[row["day"]].add(row["ab_arm"])
    return [row for row in test if len(arms[row["day"]]) > 1]


def _standings(test: Iterable[Mapping[str, Any]], requests: int) -> dict[Prompt, tuple[float, int]]:
    """Return where each prompt of a test stands, and on how many requests."""
    sums: dict[Prompt, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in test:
        held = sums[row["tenant"], row["head_digest"]]
        for at, name in enumerate(("requests", "score_micro", "square_micro2")):
            held[at] += int(row[name])
    enough = {prompt: held for prompt, held in sums.items() if held[0] >= requests}
    if len(enough) < 2:
        return {}
    mean, spread = _mean_and_spread(*(sum(column) for column in zip(*enough.values(), strict=True)))
    return {
        prompt: ((_lower_end(*held) - mean) / spread if spread else 0.0, held[0])
        for prompt, held in enough.items()
    }


def _lower_end(count: int, total: int, squares: int) -> float:
    mean, spread = _mean_and_spread(count, total, squares)
    return mean - _LOWER * spread / math.sqrt(count)


def _mean_and_spread(count: int, total: int, squares: int) -> tuple[float, float]:
    # In whole numbers up to here: sums of squares differ by little from the square of the sum.
    variance = (squares * count - total * total) / (count * max(1, count - 1))
    return total / count / MICRO, math.sqrt(variance) / MICRO
