from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from samples import parameters
from samples.measure import banking77, persistence, servegen, written
from samples.popularity import zipf


@pytest.mark.realdata
def test_arrivals_are_those_measured_on_servegen(real_data: Path) -> None:
    found = servegen(real_data / "servegen" / "m-large_windows.tsv.gz")
    shapes = list(parameters.SHAPES.values())
    assert found["share"] == [shape.share for shape in shapes]
    assert found["hour_profile"] == [list(shape.hours) for shape in shapes]
    assert found["weekday_from_monday"] == list(parameters.WEEKDAYS)
    assert found["day_noise_log_sd_median"] == parameters.DAY_NOISE
    assert found["window_noise_cv_median"] == parameters.WINDOW_NOISE
    assert found["burst_hour_ratio_p99.5_median"] == parameters.BURST


@pytest.mark.realdata
def test_ways_of_writing_are_those_measured_on_banking77(real_data: Path) -> None:
    assert banking77(real_data / "banking77" / "train.csv") == {
        "intent_exponent": parameters.INTENT_EXPONENT,
        "lower_start": parameters.LOWER_CASE,
        "no_final_mark": parameters.NO_FINAL_MARK,
        "double_space": parameters.DOUBLE_SPACE,
        "greeting": parameters.GREETING,
    }


def test_persistence_costs_the_wanted_share_of_pairs() -> None:
    kept = persistence(0.80, 1_500, 0.641)
    rng = np.random.default_rng(9)
    weights, met = zipf(0.80, 1_500), []
    for _ in range(60):
        stays, moves = rng.standard_normal((2, 1_500))
        later = kept * stays + np.sqrt(1 - kept**2) * moves
        met.append(
            weights[np.argsort(np.argsort(-stays))] @ weights[np.argsort(np.argsort(-later))]
        )
    assert np.mean(met) / (weights @ weights) == pytest.approx(np.exp(-0.641), rel=0.1)


def test_skew_of_a_written_log(log: Path) -> None:
    pair, distinct, top10, top100, once = written(log, visits=100)["acme-bank"]
    assert 0 < pair < 0.1
    assert 50 < distinct < 100
    assert top10 < top100 <= 1
    assert 0 < once < 1


def test_suggested_questions_do_not_count_as_typed(tmp_path: Path) -> None:
    asked = ["Lock my card?"] * 30 + ["lock my card?"] * 5 + [f"Question {i}" for i in range(40)]
    rows = [{"tenant": "t", "session_id": "s", "messages": None, "prompt": text} for text in asked]
    later = rows[-1] | {"messages": [{}], "prompt": "And then?"}
    text = "".join(json.dumps(row) + "\n" for row in [*rows, later, {"prompt": "ping"}])
    (tmp_path / "requests-2026-03-04.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    manifest = {"suggested": {"t": ["Lock my card?"]}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    # forty typed texts, each once: no two meet
    assert written(tmp_path, visits=40) == {"t": [0.0, 40.0, 0.25, 1.0, 1.0]}
