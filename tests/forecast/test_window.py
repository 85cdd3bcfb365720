"""Which days count as history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.window import history


def test_a_window_ends_with_the_day_and_names_its_holes() -> None:
    there = ["2026-03-14", "2026-03-15", "2026-03-10", "2026-03-12", "2026-02-01"]
    window = history(there, "2026-03-14", timedelta(days=7))
    assert window.days == ("2026-03-10", "2026-03-12", "2026-03-14")
    assert window.missing == ("2026-03-11", "2026-03-13")
    assert window.note("prompts") == (
        "prompts has no partition for 2026-03-11, 2026-03-13: not counted as history",
    )


def test_days_before_the_first_one_are_not_missing() -> None:
    window = history(["2026-03-13", "2026-03-14"], "2026-03-14", timedelta(days=28))
    assert window.days == ("2026-03-13", "2026-03-14")
    assert window.missing == ()
    assert window.note("prompts") == ()


def test_the_window_crosses_months_and_leap_days() -> None:
    window = history(["2028-02-28", "2028-03-01"], "2028-03-01", timedelta(days=3))
    assert window.days == ("2028-02-28", "2028-03-01")
    assert window.missing == ("2028-02-29",)


def test_a_lookback_of_one_day_is_the_day_itself() -> None:
    window = history(["2026-03-13", "2026-03-14"], "2026-03-14", timedelta(days=1))
    assert window.days == ("2026-03-14",)


def test_a_day_that_is_not_there_or_no_day_is_refused() -> None:
    with pytest.raises(InputDataError, match="there are 2026-03-10 to 2026-03-12"):
        history(["2026-03-12", "2026-03-10"], "2026-03-14", timedelta(days=7))
    with pytest.raises(InputDataError, match="run `distil`"):
        history([], "2026-03-14", timedelta(days=7))
    with pytest.raises(InputDataError, match="is not a day"):
        history(["2026-03-12"], "yesterday", timedelta(days=7))
