from __future__ import annotations

import numpy as np
import pytest

from samples.popularity import Walk, zipf


def test_zipf_weights() -> None:
    assert zipf(1.0, 4) == pytest.approx(np.array([12, 6, 4, 3]) / 25)
    assert zipf(0.0, 5) == pytest.approx(np.full(5, 0.2))


def test_scores_keep_their_variance_and_forget_as_told() -> None:
    rng = np.random.default_rng(1)
    walk = Walk(rng.standard_normal(40_000), 0.8, 0.5, rng)
    scores = [walk.score]
    for _ in range(3):
        walk.step()
        scores.append(walk.score)
    for days, score in enumerate(scores):
        assert score.var() == pytest.approx(1, abs=0.02)
        assert np.corrcoef(scores[0], score)[0, 1] == pytest.approx(0.8 + 0.2 * 0.5**days, abs=0.01)
