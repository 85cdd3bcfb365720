"""`warmup dimensions` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.dimensions.logs import SIX, draw, requests
from warmup_lib.cli import main
from warmup_lib.lake import Lake


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["dimensions", *arguments])
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def facts(*arguments: str) -> dict[str, Any]:
    code, out, _ = call(*arguments, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Six fields, of which the user segment alone changes answers; ids beside them."""
    folder = tmp_path / "lake"
    drawn = draw(11, 4000, 20)
    ids = {"trace": [f"t{n}" for n in range(4000)]}
    rows = requests(drawn, drawn["user_segment"], ids)
    Lake(str(folder)).replace("requests", {"day": "2026-03-09"}, rows)
    return folder


def test_the_allow_list_is_exactly_the_field_that_changes_answers(lake: Path) -> None:
    found = facts("--lake", str(lake), "--texts", "0")
    assert found["suggested"] == ["user_segment"]
    assert set(found["dimensions"]) == {*SIX, "day"}
    full, best = (found["schemes"][name] for name in ("full", "suggested"))
    assert best["wrong_merges"] == 0
    assert best["judged_hits"] > 3000
    assert best["hit_ratio"] > 0.97 > 0.1 > full["hit_ratio"]
    assert found["costs_most"] == "session_id"
    assert found["left_out"]["extra.trace"].startswith("has a new value")
    assert "suggested_and_semantic" not in found["schemes"]


def test_a_log_file_is_studied_as_the_lake_is(tmp_path: Path) -> None:
    drawn = draw(11, 1500, 20)
    lines = [
        json.dumps(
            {
                "request_id": f"r{i}",
                "ts": 1_773_000_000 + i,
                "tenant": "acme",
                "model": "m",
                "prompt": f"question {q}",
                "response": f"answer {q} {drawn['user_segment'][i]}",
                "user_segment": f"s{drawn['user_segment'][i]}",
                "session_id": f"u{drawn['session_id'][i]}",
                "extra": {"device": f"d{drawn['extra.device'][i]}"},
            }
        )
        for i, q in enumerate(drawn["question"])
    ]
    log = tmp_path / "requests.jsonl"
    log.write_text("\n".join(lines))
    found = facts("--requests", str(log), "--lake", str(tmp_path / "lake"), "--texts", "0")
    assert found["suggested"] == ["user_segment"]
    assert found["schemes"]["suggested"]["wrong_merges"] == 0
    assert {"extra.device", "session_id"} <= set(found["dimensions"])


def test_people_get_tables_sentences_and_a_picture(lake: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "keys.png"
    code, out, _ = call("--lake", str(lake), "--figure", str(picture), "--texts", "100")
    assert code == 0
    assert "Suggested allow-list: user_segment." in out
    assert "under `dimensions` (docs/keys.md): user_segment." in out
    assert "session_id costs most" in out
    assert "suggested_and_semantic is of the latest 4,000 requests" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_log_without_repeats_says_so(tmp_path: Path) -> None:
    rows = requests({"question": np.arange(40)}, np.arange(40))
    Lake(str(tmp_path)).replace("requests", {"day": "2026-03-09"}, rows)
    code, out, _ = call(
        "--lake", str(tmp_path), "--texts", "0", "--figure", str(tmp_path / "a.png")
    )
    assert code == 0
    assert "nothing can be said about what answers depend on" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--lake", "empty"], "the lake holds no requests"),
        (["--requests", "x", "--day", "2026-03-09"], "are of the lake"),
        (["--requests", "not-there.jsonl"], "not-there.jsonl"),
        (["--days", "0"], "0 is not in the range"),
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


def test_a_day_that_is_not_there_is_named(lake: Path) -> None:
    code, _, said = call("--lake", str(lake), "--day", "2026-03-08")
    assert code == 2
    assert "no requests of 2026-03-08: there are 2026-03-09 to 2026-03-09" in said
    assert facts("--lake", str(lake), "--day", "2026-03-09", "--days", "3", "--texts", "0")
