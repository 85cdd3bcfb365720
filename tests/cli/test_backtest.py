"""`warmup backtest` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.forecast.test_trace_lake import store
from tests.forecast.traces import HOUR, zipf
from warmup_lib.cli import main

NAMES = "lru_cold lru lfu static_last static_all ours static_hindsight belady"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = [
        f"{i * 6 * HOUR // 3000 / 1e6},{x}" for i, x in enumerate(zipf(1, 3000, 300, 0.9).tolist())
    ]
    path = tmp_path / "trace.csv"
    path.write_text("ts,item\n" + "\n".join(rows) + "\nbroken\n")
    return path


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["backtest", *arguments])
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def facts(*arguments: str) -> dict[str, Any]:
    code, out, _ = call(*arguments, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_all_policies_are_told_by_their_names(trace: Path) -> None:
    found = facts("--trace", str(trace), "--capacity", "40")
    assert " ".join(found["policies"]) == NAMES
    for figures in found["policies"].values():
        assert set(figures) == {
            "hit_ratio",
            "early_hit_ratio",
            "byte_hit_ratio",
            "cost_hit_ratio",
        }
        assert set(figures["early_hit_ratio"]) == {"5m", "15m", "60m"}
    assert found["chosen_policy"] == "ours"
    assert found["trace"]["periods"] == 6
    assert found["trace"]["rows_rejected"] == {"wrong number of columns": 1}
    ours, best = (found["policies"][name]["hit_ratio"] for name in ("ours", "static_hindsight"))
    assert 0.3 < ours < best


def test_a_period_may_be_of_any_length(trace: Path) -> None:
    found = facts("--trace", str(trace), "--capacity", "40", "--period", "30m")
    assert found["trace"]["periods"] == 12
    code, _, said = call("--trace", str(trace), "--capacity", "40", "--period", "often")
    assert code == 2
    assert "'often' is not a time such as 10m, 1h or 1d" in said


def test_periods_that_would_take_hours_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("ts,item\n" + "".join(f"{i * 30},{i % 7}\n" for i in range(30_000)))
    code, out, said = call("--trace", str(path), "--capacity", "3", "--period", "10s")
    assert (code, out) == (2, "")
    assert "30,000 periods are too many" in said
    assert "choose --period 1m or longer" in said
    assert (
        facts("--trace", str(path), "--capacity", "3", "--period", "1d")["trace"]["periods"] == 11
    )


@pytest.mark.parametrize(
    "wild", ["9999-12-31T23:59:59-12:00", "1e300", "0001-01-01T00:00:00+14:00"]
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "blocks"])
def test_a_time_out_of_range_costs_its_row_only(tmp_path: Path, wild: str, form: str) -> None:
    times = [*(str(1_773_651_600_000 + i * 600_000) for i in range(9)), wild]
    row = {
        "csv": "{},a",
        "jsonl": '{{"ts": "{}", "item": "a"}}',
        "blocks": '{{"timestamp": "{}", "hash_ids": [7]}}',
    }[form]
    path = tmp_path / "trace"
    path.write_text("ts,item\n" * (form == "csv") + "".join(row.format(t) + "\n" for t in times))
    trace = facts("--trace", str(path), "--capacity", "3")["trace"]
    assert trace["accesses"] == 9
    assert trace["rows_rejected"] == {"bad ts": 1}
    assert (trace["from"], trace["to"]) == ("2026-03-16T09:00:00Z", "2026-03-16T10:20:00Z")


def test_people_get_tables_and_a_sentence(trace: Path) -> None:
    code, out, _ = call("--trace", str(trace), "--capacity", "40", "--fixed-plans")
    assert code == 0
    assert "1 of 3,001 rows could not be used (wrong number of columns: 1)" in out
    assert "static_hindsight" in out
    assert "Chosen: ours. Warm the " in out
    assert "(renewed)" not in out


def test_a_picture_is_drawn(trace: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "hits.png"
    found = facts("--trace", str(trace), "--capacity", "40", "--figure", str(picture))
    assert found["figure"] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_lake_is_a_trace_too(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    digests = zipf(2, 1400, 60, 0.8).tolist()
    store(lake, *({"response_digest": f"d{x}", "latency_ms": 10.0 * x} for x in digests))
    found = facts("--lake", str(lake), "--capacity", "10")
    assert found["trace"]["accesses"] == 1400
    lru = found["policies"]["lru"]
    assert lru["cost_hit_ratio"] < lru["hit_ratio"]
    assert facts("--lake", str(lake), "--capacity", "10", "--day", "2026-03-14") == found
    code, _, said = call("--lake", str(lake), "--capacity", "10", "--day", "2026-03-13")
    assert code == 2
    assert "2026-03-13" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--capacity", "0", "--trace", "x"], "0 is not in the range"),
        (["--trace", "x"], "Missing option '--capacity'"),
        (["--capacity", "5", "--trace", "not-there.csv"], "no such trace file"),
        (["--capacity", "5", "--trace", "x", "--layer", "responses"], "are of the lake"),
        (["--capacity", "5", "--lake", "empty"], "the lake holds no requests"),
    ],
)
def test_bad_use_is_told_in_a_sentence(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, said = call(*arguments)
    assert code == 2
    assert says in said
    assert out == ""
    assert "Traceback" not in said
