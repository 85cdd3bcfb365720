"""Keys, hits and wrong merges against a cache that is played request by request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.dimensions.logs import draw, read, requests
from warmup_lib.dimensions.merging import Merging, merging

LOG = read(requests(draw(0, 40), np.zeros(40, np.int64)))

row = st.tuples(st.integers(0, 6), st.integers(-1, 2), st.booleans())


@given(st.lists(row, min_size=1, max_size=40))
def test_it_is_what_a_cache_without_end_would_do(rows: list[tuple[int, int, bool]]) -> None:
    key, answer, asked = (np.array(column) for column in zip(*rows, strict=True))
    log = replace(LOG, answer=answer, asked=asked)
    kept: dict[int, int] = {}
    judged = wrong = 0
    for k, a, through in rows:
        if a < 0:
            continue
        if k in kept and through:
            judged += 1
            wrong += kept[k] != a
        kept.setdefault(k, a)
    keys = {k for k, _, through in rows if through}
    assert merging(log, key) == Merging(int(asked.sum()), len(keys), judged, wrong)


def test_ratios_of_nothing() -> None:
    nothing = Merging(0, 0, 0, 0)
    assert (nothing.hit_ratio, nothing.wrong_rate) == (0.0, None)
    assert Merging(10, 4, 5, 1).hit_ratio == 0.6
    assert Merging(10, 4, 5, 1).wrong_rate == 0.2
