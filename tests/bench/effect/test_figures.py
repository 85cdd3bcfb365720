from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.effect.figures import (
    FINEST,
    Step,
    in_time,
    lost,
    next_rate,
    reduction,
    spread,
    sustained,
    times_more,
)

TIMES = st.lists(st.one_of(st.none(), st.floats(0, 10_000)), min_size=1, max_size=60)


def step(rate: float, *, late: int = 0, offered: int = 100) -> Step:
    return Step(rate, [50.0] * (offered - late) + [None] * late)


def test_percentiles_are_those_of_the_times() -> None:
    found = spread(iter(range(1, 102)))
    assert (found.n, found.p50, found.p95, found.p99) == (101, 51.0, 96.0, 100.0)
    with pytest.raises(ValueError, match="no time"):
        spread([])


def test_a_reduction_is_the_share_that_is_gone() -> None:
    assert reduction(1842, 317) == pytest.approx(0.828, abs=5e-4)
    assert reduction(100, 150) == -0.5


def test_what_has_no_first_token_is_late_however_loose_the_limit() -> None:
    assert in_time([100.0, 500.0, 501.0, None], 500.0) == 0.5
    assert in_time([None], math.inf) == 0.0


def test_a_rate_holds_at_exactly_ninety_five_percent() -> None:
    assert step(1, late=5).holds(500)
    assert not step(1, late=6).holds(500)


@given(TIMES, st.floats(0, 10_000))
def test_a_step_is_lost_once_enough_of_it_is_late_and_not_before(
    times: list[float | None], limit: float
) -> None:
    late = [t for t in times if t is None or t > limit]
    assert lost(late, len(times), limit) == (not Step(1, times).holds(limit))
    assert not lost([t for t in times if t not in late], len(times), limit)


def test_a_rate_above_one_that_fails_is_not_sustained() -> None:
    steps = [step(4), step(1), step(2, late=50)]
    assert sustained(steps, 500) == 1
    assert sustained([step(1, late=50), step(2)], 500) is None


@pytest.mark.parametrize(
    ("tried", "following"),
    [
        ([], 1.0),
        ([step(1)], 2.0),
        ([step(1, late=9)], 0.5),
        ([step(1), step(2, late=9)], math.sqrt(2)),
        ([step(1), step(2, late=9), step(1.41, late=9)], None),
        ([step(0.5, late=9)], None),  # 0.25 is below the lowest
        ([step(8)], None),  # 16 is above the highest
    ],
)
def test_the_next_rate(tried: list[Step], following: float | None) -> None:
    found = next_rate(tried, [500], begin=1, least=0.5, most=8)
    assert found == (following if following is None else pytest.approx(following))


def test_one_limit_after_another_is_searched() -> None:
    slow = Step(1, [1000.0] * 20)
    assert next_rate([slow], [500, 3000], begin=1, least=1, most=8) == 2


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_search_ends_close_to_the_rate_that_holds(strict: float, loose: float) -> None:
    limits = {500.0: min(strict, loose), 3000.0: max(strict, loose)}
    steps: list[Step] = []
    while (rate := next_rate(steps, list(limits), begin=1, least=0.125, most=16)) is not None:
        first = 100.0 if rate <= limits[500.0] else 1000.0 if rate <= limits[3000.0] else None
        steps.append(Step(rate, [first]))
        assert len(steps) < 20
    assert len({s.rate for s in steps}) == len(steps)
    for limit, holds in limits.items():
        found = sustained(steps, limit)
        if found is None:
            assert holds < 0.25
        else:
            assert found <= holds
            assert found * FINEST > holds or found > 8


@pytest.mark.parametrize(
    ("cold", "warm", "told"), [(0.5, 2.0, "4.0"), (None, 2.0, "> 8.0"), (0.5, None, "-")]
)
def test_a_cold_rate_that_was_not_found_gives_a_bound(
    cold: float | None, warm: float | None, told: str
) -> None:
    assert times_more(cold, warm, 0.25) == told
