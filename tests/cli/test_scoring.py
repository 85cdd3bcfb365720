"""Forecasts and what came true are printed, and drawn as a picture that shows something."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from warmup_lib.cli.scoring import calibration, draw
from warmup_lib.forecast.spread import interval
from warmup_lib.verify.calibration import Scored, facts


@pytest.fixture
def told() -> dict[str, object]:
    draws = np.random.default_rng(1)
    mean = draws.lognormal(1, 1, 300)
    layer = Scored(mean, mean, *interval(mean, mean), draws.poisson(mean))
    return {
        "plan_id": "2026-03-16-nightly-0a1b2c3d4e",
        "window": "2026-03-17",
        "calibration": {"responses": facts(layer)},
    }


def test_the_table_tells_the_share_inside(told: dict[str, object]) -> None:
    out = io.StringIO()
    calibration(Console(file=out, width=120), told)
    inside = told["calibration"]["responses"]["hot"]["inside"]  # type: ignore[index]
    assert f"{inside:.2%}".replace("%", " %") in out.getvalue()


def test_nothing_is_printed_without_a_whole_day() -> None:
    out = io.StringIO()
    calibration(Console(file=out), {})
    assert out.getvalue() == ""


def test_the_picture_has_both_panels(told: dict[str, object], tmp_path: Path) -> None:
    import matplotlib.image

    draw(tmp_path / "deep" / "f.png", told)
    pixels = matplotlib.image.imread(tmp_path / "deep" / "f.png")[..., :3]
    height, width, _ = pixels.shape
    left, right = pixels[:, : width // 2], pixels[:, width // 2 :]
    assert all(len(np.unique(half.reshape(-1, 3), axis=0)) > 20 for half in (left, right))
    assert height > 300
