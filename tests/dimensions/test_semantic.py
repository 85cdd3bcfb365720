"""Semantic keys against a cache that is asked text by text."""

from __future__ import annotations

import numpy as np
import pytest

from warmup_lib.dimensions.codes import dense
from warmup_lib.dimensions.semantic import semantic_keys
from warmup_lib.places import ROUNDING


@pytest.mark.parametrize(("seed", "dimension"), [(0, 3), (1, 3), (2, 6), (3, 6)])
def test_the_nearest_earlier_entry_serves(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    texts, rows = 1400, 3000
    vectors = rng.normal(size=(texts, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    has_vector = rng.random(texts) < 0.95
    place, text = rng.integers(0, 2, rows), rng.integers(0, texts, rows)
    threshold = np.where(place == 0, 0.9, 0.99)
    keys = semantic_keys(place, text, vectors, has_vector, threshold)

    entries: dict[int, list[int]] = {0: [], 1: []}
    served: dict[tuple[int, int], tuple[int, int]] = {}
    for p, t, least in zip(place.tolist(), text.tolist(), threshold.tolist(), strict=True):
        if (p, t) in served:
            continue
        cosines = vectors[entries[p]] @ vectors[t]
        if has_vector[t] and len(cosines) and cosines.max() >= least - ROUNDING:
            served[p, t] = (p, entries[p][int(cosines.argmax())])
        else:
            served[p, t] = (p, t)
            if has_vector[t]:
                entries[p].append(t)
    expected = [served[pair] for pair in zip(place.tolist(), text.tolist(), strict=True)]
    numbers = {pair: n for n, pair in enumerate(dict.fromkeys(expected))}
    together = {(k, numbers[e]) for k, e in zip(keys.tolist(), expected, strict=True)}
    assert len(together) == len(numbers) == len(np.unique(keys))
    assert len(numbers) < len(np.unique(dense(place * texts + text)))
