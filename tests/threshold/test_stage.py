"""Thresholds are stored by tenant, come into force by day, and say what they are from."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import StageReport
from warmup_lib.threshold.force import Threshold, in_force, rows_in_force
from warmup_lib.threshold.pairs import Pair
from warmup_lib.threshold.stage import run

KEYS = Keys(b"a secret for these tests")
ONE, TWO = "2026-03-13", "2026-03-14"
FIRST, SECOND = "bcdfghjklmnprstvwz", "aeiou"
WORDS = [a + e + b + o for a in FIRST for e in SECOND for b in FIRST[:5] for o in "ao"]


def given(tenant: str, count: int, *, same: bool = True) -> list[dict[str, Any]]:
    return [
        {"tenant": tenant, "a": f"how do i find the {w}", "b": f"how can i find the {w}"}
        | {"same": same}
        for w in WORDS[:count]
    ]


def calibrate(
    lake: Lake,
    rows: list[dict[str, Any]],
    day: str = ONE,
    config: Config | None = None,
    **more: Any,
) -> StageReport:
    file = Path(lake.root).parent / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return run(lake, day, config or Config(), KEYS, pairs=file, **more)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def test_each_tenant_has_its_own_and_the_small_ones_share(lake: Lake) -> None:
    rows = [*given("acme", 400), *given("bad", 400, same=False)]
    rows += [*given("small", 200), *given("tiny", 200)]
    report = calibrate(lake, rows)
    said = report.facts["tenants"]
    assert {t: (one["verdict"], one["tenants"]) for t, one in said.items()} == {
        "acme": ("kept", 1),
        "bad": ("none_keeps", 1),
        "small": ("kept", 2),
        "tiny": ("kept", 2),
    }
    assert said["acme"]["hits"] == said["acme"]["pairs"] == 400
    assert said["small"]["pairs"] == 400
    assert report.facts["source"] == "pairs"
    assert any("bad: no similarity" in note for note in report.notes)
    thresholds = in_force(lake, Config(), report.facts["encoder"])
    assert thresholds.of("acme") == Threshold(said["acme"]["threshold"], 0.01, ONE)
    assert thresholds.at("bad") == 1.0
    assert thresholds.at("nobody") == Config().encoder.threshold
    assert in_force(lake, Config(), "another encoder").at("acme") == Config().encoder.threshold


def test_a_small_tenant_whose_own_hits_were_wrong_shares_no_threshold(lake: Lake) -> None:
    rows = [row for k in range(4) for row in given(f"good{k}", 200)]
    rows += given("bad", 1, same=False)
    said = calibrate(lake, rows).facts["tenants"]
    assert said["good0"]["verdict"] == "kept"
    assert said["bad"]["verdict"] == "none_keeps"
    assert (said["bad"]["pairs"], said["bad"]["tenants"]) == (1, 5)


def test_what_is_stored_are_digests_and_never_texts(lake: Lake) -> None:
    shown: list[tuple[Pair, str, str]] = []
    report = calibrate(lake, given("bad", 400, same=False), show=lambda *three: shown.append(three))
    stored = lake.read("threshold_pairs", {"day": ONE}).to_pylist()
    assert len(stored) == 400
    assert all(row["wrong"] for row in stored)
    assert KEYS.text_digest(f"how do i find the {WORDS[0]}") in {
        digest for row in stored for digest in (row["a_digest"], row["b_digest"])
    }
    assert "find the" not in json.dumps([report.facts, report.notes, stored])
    assert len(shown) == len(report.facts["wrong_hits"]) == 20
    assert all("find the" in a and "find the" in b for _, a, b in shown)


def test_the_latest_counts_and_other_tenants_of_a_day_stay(lake: Lake) -> None:
    encoder = calibrate(lake, given("acme", 400)).facts["encoder"]
    calibrate(lake, given("zeta", 400))
    assert set(rows_in_force(lake, encoder)) == {"acme", "zeta"}
    calibrate(lake, given("acme", 400, same=False), TWO)
    assert in_force(lake, Config(), encoder).at("acme") == 1.0
    assert in_force(lake, Config(), encoder, ONE).at("acme") < 1.0
    again = calibrate(lake, given("acme", 400), TWO, keep_labelled=True)
    assert again.facts["kept_labelled"] == ["acme"]
    assert in_force(lake, Config(), encoder).at("acme") == 1.0


def test_too_few_pairs_leave_the_configured_one_and_say_so(lake: Lake) -> None:
    report = calibrate(lake, given("acme", 40))
    assert in_force(lake, Config(), report.facts["encoder"]).at("acme") == 0.92
    assert report.notes == ("acme: 40 pairs show nothing yet, encoder.threshold 0.92 stands",)
    with pytest.raises(InputDataError, match="no prompts up to"):
        run(lake, ONE, Config(), KEYS)


def test_pairs_without_a_tenant_stand_for_everyone_else(lake: Lake) -> None:
    rows = [{k: v for k, v in row.items() if k != "tenant"} for row in given("-", 400)]
    report = calibrate(lake, [*rows, *given("bad", 400, same=False)])
    thresholds = in_force(lake, Config(), report.facts["encoder"])
    assert thresholds.at("bad") == 1.0
    assert thresholds.at("anyone") == report.facts["tenants"]["*"]["threshold"] < 0.92


@pytest.mark.realdata
def test_labels_that_overlap_end_in_equal_questions_only(lake: Lake, real_data: Path) -> None:
    """BANKING77's nearest questions of two labels often ask one thing: no cosine keeps 1 %."""
    with (real_data / "banking77" / "test.csv").open(encoding="utf-8", newline="") as file:
        rows = [{"text": r["text"], "label": r["category"]} for r in csv.DictReader(file)]
    report = calibrate(lake, rows)
    assert report.facts["tenants"]["*"]["verdict"] == "none_keeps"
    assert report.facts["tenants"]["*"]["pairs"] > 1000
