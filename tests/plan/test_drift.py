"""Drift is the share of a new plan's hits that the current one would miss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.plan.drift import drift


@pytest.mark.parametrize(
    ("current", "fresh", "expected"),
    [
        ({"responses": 80}, {"responses": 100}, {"responses": 0.2}),
        ({}, {"responses": 100}, {"responses": 1.0}),
        ({"responses": 120}, {"responses": 100}, {"responses": 0.0}),
        ({"responses": 0}, {"responses": 0}, {"responses": 0.0}),
        ({"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 0.0, "b": 0.25}),
    ],
)
def test_known_values(
    current: dict[str, int], fresh: dict[str, int], expected: dict[str, float]
) -> None:
    assert drift(current, fresh) == pytest.approx(expected)


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_drift_is_a_share(current: int, fresh: int) -> None:
    assert 0 <= drift({"x": current}, {"x": fresh})["x"] <= 1
