"""Coverage offline is what looking up one by one would give, and greedy is close to the best."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apply.memory import ENCODER, memory_context, plan_item
from tests.verify.world import request, requests
from warmup_lib.config import Config
from warmup_lib.distil.stage import run as distil
from warmup_lib.guard import compatible
from warmup_lib.lake import Lake
from warmup_lib.layers.registry import LAYERS
from warmup_lib.verify.baselines import (
    Coverage,
    Entry,
    compare,
    entries_of,
    hottest,
    main_candidates,
)
from warmup_lib.verify.vectors import WindowVectors

THRESHOLD = Config().encoder.threshold
WORDS = ["card", "card not", "pay 20", "pay 50", "login", "salary", "café"]


class Angles:
    """Vectors on a circle, by digest: `angle` degrees are written into the digest."""

    encoder = ENCODER
    dimension = 2

    def get(self, digests: Sequence[str]) -> dict[str, Any]:
        angles = {d: np.deg2rad(int(d[:3])) for d in digests}
        return {d: np.array([np.cos(a), np.sin(a)], np.float32) for d, a in angles.items()}


def nothing(texts: Sequence[str]) -> Any:
    raise AssertionError(f"{len(texts)} texts had to be encoded")


def row(number: int, angle: int, word: str, tenant: str, context: str, **more: Any) -> Any:
    text = f"{word} angle {'x' * angle}"
    return request(
        number,
        0,
        tenant=tenant,
        prompt=text,
        text_digest=f"{angle:03d}{word.encode().hex():0<29.29}",
        context_digest=f"{context:0>32}",
        response_digest=f"{angle:03d}{context}{tenant}{word.encode().hex():0<20.20}",
        head_digest=f"{context}{tenant}",
        **more,
    )


def coverage(rows: Any, layer: str) -> Coverage:
    return Coverage(rows, LAYERS[layer], memory_context(), WindowVectors(Angles(), nothing))


def entry(of: Any) -> Entry:
    return Entry(
        of["tenant"],
        of["response_digest"],
        of["context_digest"],
        of["text_digest"],
        of["prompt"],
    )


def serves(warm: Any, asked: Any) -> bool:
    if warm["tenant"] != asked["tenant"] or warm["context_digest"] != asked["context_digest"]:
        return False
    if warm["response_digest"] == asked["response_digest"]:
        return True
    vectors = Angles().get([warm["text_digest"], asked["text_digest"]])
    cosine = float(vectors[warm["text_digest"]] @ vectors[asked["text_digest"]])
    return cosine >= THRESHOLD - 1e-6 and compatible(warm["prompt"], asked["prompt"])


drawn_rows = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(WORDS),
        st.sampled_from(["acme", "globex"]),
        st.sampled_from("cd"),
    ),
    min_size=1,
    max_size=25,
)


@settings(deadline=None, max_examples=40)
@given(drawn_rows, st.data())
def test_coverage_is_what_asking_one_by_one_gives(drawn: Any, data: Any) -> None:
    rows = [row(n, *of) for n, of in enumerate(drawn)]
    warm = data.draw(st.lists(st.sampled_from(rows), max_size=6))
    expected = sum(any(serves(w, asked) for w in warm) for asked in rows) / len(rows)
    found = coverage(requests(*rows), "responses").covered([entry(w) for w in warm])
    assert found == pytest.approx(expected)


@settings(deadline=None, max_examples=25)
@given(drawn_rows, st.integers(1, 3))
def test_the_greedy_best_is_near_the_best_of_all_sets(drawn: Any, size: int) -> None:
    rows = [row(n, *of) for n, of in enumerate(drawn)]
    different = list({r["response_digest"]: r for r in rows}.values())[:8]
    rows = [r for r in rows if r["response_digest"] in {d["response_digest"] for d in different}]
    best = max(
        sum(any(serves(w, asked) for w in chosen) for asked in rows) / len(rows)
        for chosen in itertools.combinations(different, min(size, len(different)))
    )
    found = coverage(requests(*rows), "responses").best(size)
    assert best * (1 - 1 / np.e) - 1e-9 <= found <= best + 1e-9


def test_what_may_not_be_warmed_is_not_chosen_in_hindsight_but_can_be_served() -> None:
    rows = requests(
        row(1, 10, "card", "acme", "c", redacted=True),
        row(2, 10, "card", "acme", "c", redacted=True),
        row(3, 12, "card", "acme", "c"),
        row(4, 50, "salary", "acme", "c", response=None),
    )
    assert coverage(rows, "responses").best(1) == 0.75


def test_exact_layers_take_the_most_requested_keys() -> None:
    rows = requests(
        *[row(n, 10, "card", "acme", "c") for n in range(5)],
        *[row(n, 12, "card", "acme", "c") for n in range(5, 8)],
        *[row(n, 12, "card", "globex", "c") for n in range(8, 10)],
    )
    embeddings = coverage(rows, "embeddings")
    assert [embeddings.best(n) for n in (1, 2, 3)] == [0.5, 0.8, 1.0]
    assert embeddings.covered([]) == 0.0


def test_the_plan_is_compared_with_the_day_it_knew_and_the_day_it_met(tmp_path: Path) -> None:
    lake = Lake(f"file://{tmp_path}")
    yesterday = [row(n, 10, "card", "acme", "c") for n in range(3)]
    yesterday += [row(n, 40, "login", "acme", "c", bypass=True) for n in range(3, 9)]
    yesterday += [row(9, 40, "login", "acme", "c")]
    lake.replace("requests", {"day": "2026-03-14"}, requests(*yesterday))
    distil(lake, "2026-03-14", Config())
    today = [row(n, 10, "card", "acme", "c") for n in range(2)]
    today += [row(n, 55, "salary", "acme", "c") for n in range(2, 10)]
    window = coverage(requests(*today), "responses")
    items = [plan_item("responses", 1)]

    found = compare(lake, window, LAYERS["responses"], items, "2026-03-14", Config())
    # Yesterday's most requested that asked the caches is the card question; today's is another.
    assert found == {"size": 1, "plan": 0.0, "top_k": 0.2, "hindsight": 0.8}
    unknown = compare(lake, window, LAYERS["responses"], items, "2026-03-13", Config())
    assert unknown["top_k"] is None


def test_ties_among_the_hottest_are_settled_by_tenant_and_key() -> None:
    rows = requests(row(1, 12, "card", "acme", "c"), row(2, 10, "card", "acme", "c"))
    demand = coverage(rows, "embeddings").demand
    candidates = main_candidates(LAYERS["embeddings"], demand, Config())
    assert [e.key_digest[:3] for e in hottest(candidates, 1)] == ["010"]
    assert entries_of([plan_item("responses", 3)])[0].key_digest == f"{3:032x}"
