"""A plan follows from the lake alone, waits while the current one serves, and says why it chose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.plan.building import BEFORE, DAY, embed, fill, head, heat, prompt
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.plan.current import current_plan, plan_meta
from warmup_lib.plan.stage import run
from warmup_lib.stage import StageReport

NEXT = "2026-03-15"
DEGREES = {"t-a": 0.0, "t-b": 30.0, "t-c": 60.0, "t-d": 170.0, "t-n": 100.0}


def config(**more: Any) -> Config:
    layers = {"responses": {"items": 2, "generate": 0}, "embeddings": {"items": 3}}
    layers |= {"weights": {"enabled": False}, "adapters": {"enabled": False}}
    return Config.model_validate({"encoder": {"threshold": 0.8}, "layers": layers, **more})


def day_of(day: str, **requests: int) -> list[dict[str, Any]]:
    return [prompt(digest, count, day=day) for digest, count in requests.items()]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    rows = [*day_of(DAY, a=3, b=1, c=3, d=4), prompt("x", 9, unwarmable="redacted")]
    heads = [head("h", 11), head("long", 6, system_prompt="Policy. " * 900), head("v", 5)]
    heads[-1]["unwarmable"] = "volatile"
    made = fill(tmp_path / "lake", {DAY: rows}, {DAY: heads})
    embed(made, {**DEGREES, "t-x": 75.0})
    return made


def items(lake: Lake, report: StageReport, layer: str) -> list[dict[str, Any]]:
    rows = lake.read("plan", {"plan_id": report.facts["plan_id"]})
    return rows.filter(pc.equal(rows["layer"], layer)).to_pylist()


def keys(lake: Lake, report: StageReport, layer: str) -> list[str]:
    return [row["key_digest"] for row in items(lake, report, layer)]


def contents(lake: Lake, plan_id: str) -> dict[str, bytes]:
    root = Path(lake.uri)
    return {
        f"{table}/{file.name}": file.read_bytes()
        for table in ("plan", "left_out")
        for file in sorted((root / table / f"plan_id={plan_id}").iterdir())
    }


def test_plan_covers_the_most_and_says_what_to_expect(lake: Lake) -> None:
    report = run(lake, DAY, config())

    facts = report.facts
    assert facts["decision"] == "planned"
    assert facts["plan_id"].startswith(f"{DAY}-nightly-")
    assert facts["items"] == {"embeddings": 5, "responses": 2, "prefixes": 2}
    assert facts["tiers"] == {"L1": {"layer": "embeddings", "items": 2, "expected_hits": 17.0}}
    # c serves b, itself and the redacted x; d is alone; a is left.
    assert keys(lake, report, "responses") == ["c", "d"]
    assert facts["expected_hits"] == {"embeddings": 10.0, "responses": 17.0, "prefixes": 17.0}
    assert facts["tenants"] == {"acme": 9}
    assert facts["drift"] is None
    assert facts["bytes"]["embeddings"] > 0
    assert report.rows_out == 9
    assert report.rows_in == 5 + 3
    assert facts["left_out"]["responses"] == {"below_budget": 1, "covered": 1, "redacted": 1}
    assert facts["left_out"]["prefixes"] == {"volatile": 1}


def test_items_are_ranked_and_give_reasons_without_text(lake: Lake) -> None:
    report = run(lake, DAY, config())
    first, second = items(lake, report, "responses")
    assert (first["rank"], first["expected_micro"], first["heat_micro"]) == (
        1,
        13_000_000,
        3_000_000,
    )
    assert first["reason"] == "covers 13.0 expected requests a day of 3 phrasings"
    assert second["reason"] == "covers 4.0 expected requests a day of 1 phrasing"
    busy, long = items(lake, report, "prefixes")
    assert (busy["key_digest"], long["key_digest"]) == ("h", "long")
    assert long["reason"] == "6.0 expected requests a day share its 1,800 tokens (estimated)"
    assert items(lake, report, "embeddings")[0]["reason"] == "4.0 expected requests a day need it"
    texts = [row["text"] for row in lake.read("prompts", {"day": DAY}).to_pylist()]
    for row in lake.read("plan", {"plan_id": report.facts["plan_id"]}).to_pylist():
        assert not any(text in row["reason"] for text in texts)


def test_left_out_has_one_row_a_candidate_that_was_not_chosen(lake: Lake) -> None:
    report = run(lake, DAY, config())
    rows = lake.read("left_out", {"plan_id": report.facts["plan_id"]}).to_pylist()
    of_responses = {r["digest"]: r["reason"] for r in rows if r["layer"] == "responses"}
    assert of_responses == {"a": "below_budget", "b": "covered", "x": "redacted"}


def test_same_lake_gives_the_same_bytes(lake: Lake) -> None:
    first = run(lake, DAY, config())
    before = contents(lake, first.facts["plan_id"])
    again = run(lake, DAY, config())
    assert again.facts == first.facts
    assert contents(lake, first.facts["plan_id"]) == before
    assert len(before) == 4


@pytest.mark.parametrize("seed", ["1", "77"])
def test_another_process_gives_the_same_bytes(lake: Lake, seed: str) -> None:
    settings = config()
    first = run(lake, DAY, settings)
    before = contents(lake, first.facts["plan_id"])
    lake.drop("plan", {"plan_id": first.facts["plan_id"]})
    lake.drop("left_out", {"plan_id": first.facts["plan_id"]})
    code = (
        "import sys; from warmup_lib.config import Config; from warmup_lib.lake import Lake; "
        "from warmup_lib.plan.stage import run; "
        "print(run(Lake(sys.argv[1]), sys.argv[2], Config.model_validate_json(sys.argv[3]))"
        ".facts['plan_id'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, lake.uri, DAY, settings.model_dump_json()],
        env={**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == first.facts["plan_id"]
    assert contents(lake, first.facts["plan_id"]) == before


def test_id_changes_with_what_the_plan_is_made_from(lake: Lake) -> None:
    ids = {
        run(lake, DAY, config(), force=True, **more).facts["plan_id"]
        for more in (
            {},
            {"kind": "launch"},
            {"layers": ["prefixes"]},
            {"since": DAY},
            {"tenants": ["acme"]},
        )
    }
    ids.add(run(lake, DAY, config(encoder={"threshold": 0.81})).facts["plan_id"])
    heat(lake, DAY, {("prompt", "acme", "a"): 1})
    ids.add(run(lake, DAY, config()).facts["plan_id"])
    assert len(ids) == 7


def add_day(lake: Lake, day: str, **counts: float) -> None:
    """Add a day with the heat given for prompts; heads keep theirs."""
    lake.replace("prompts", {"day": day}, lake.read("prompts", {"day": DAY}))
    lake.replace("heads", {"day": day}, lake.read("heads", {"day": DAY}))
    of_prompts = {("prompt", "acme", digest): count for digest, count in counts.items()}
    heat(lake, day, {**of_prompts, ("head", "acme", "h"): 11, ("head", "acme", "long"): 6})


SAME = {"a": 3, "b": 1, "c": 3, "d": 4, "x": 9}


def test_wait_while_the_current_plan_catches_as_much(lake: Lake) -> None:
    planned = run(lake, DAY, config())
    add_day(lake, NEXT, **SAME)
    held = contents(lake, planned.facts["plan_id"])

    report = run(lake, NEXT, config())

    assert report.facts["decision"] == "wait"
    assert report.facts["plan_id"] == planned.facts["plan_id"]
    assert report.facts["items"] == planned.facts["items"]
    assert report.facts["expected_hits"] == planned.facts["expected_hits"]
    assert (report.facts["drift"], report.rows_out) == (0.0, 0)
    assert report.notes[0].startswith(f"wait: {planned.facts['plan_id']} still catches 100.0%")
    assert contents(lake, planned.facts["plan_id"]) == held
    assert [p["plan_id"] for p in lake.partitions("plan")] == [planned.facts["plan_id"]]


def test_drift_past_the_threshold_makes_a_plan(lake: Lake) -> None:
    first = run(lake, DAY, config())
    # Responses: c and d still catch b + c + x + d = 13 + 0.8; a new plan would take a: 3 more.
    add_day(lake, NEXT, **{**SAME, "d": 0.8, "a": 4})
    report = run(lake, NEXT, config())
    assert report.facts["decision"] == "planned"
    assert report.facts["current"] == first.facts["plan_id"]
    assert report.facts["drift_by_layer"]["responses"] == pytest.approx(1 - 13.8 / 17, abs=1e-6)
    assert report.facts["drift_by_layer"]["prefixes"] == 0.0
    assert report.facts["drift"] == max(report.facts["drift_by_layer"].values())
    assert keys(lake, report, "responses") == ["c", "a"]


def test_threshold_decides(lake: Lake) -> None:
    settings = config(plan={"drift_threshold": 0.5})
    run(lake, DAY, settings)
    add_day(lake, NEXT, **{**SAME, "d": 0.8, "a": 4})
    assert run(lake, NEXT, settings).facts["decision"] == "wait"
    assert run(lake, NEXT, settings, force=True).facts["decision"] == "planned"


def test_other_settings_make_a_new_plan(lake: Lake) -> None:
    run(lake, DAY, config())
    add_day(lake, NEXT, **SAME)
    assert run(lake, NEXT, config(gates={"cache_hit_ratio": 0.1})).facts["decision"] == "planned"


def test_current_plan_under_another_encoder_catches_nothing(lake: Lake) -> None:
    run(lake, DAY, config())
    add_day(lake, NEXT, **SAME)
    embed(lake, {**DEGREES, "t-x": 75.0}, day=NEXT, encoder="other")
    report = run(lake, NEXT, config())
    assert report.facts["drift_by_layer"] == {"embeddings": 1.0, "responses": 1.0, "prefixes": 0.0}
    assert {row["encoder"] for row in items(lake, report, "responses")} == {"other"}


def test_plan_of_one_layer_is_not_current_for_all(lake: Lake) -> None:
    nightly = run(lake, DAY, config())
    add_day(lake, NEXT, **SAME)
    prepeak = run(lake, NEXT, config(), kind="prepeak", layers=["prefixes"], force=True)
    add_day(lake, "2026-03-16", **SAME)
    assert prepeak.facts["items"] == {"prefixes": 2}
    assert current_plan(lake) == prepeak.facts["plan_id"]
    assert run(lake, "2026-03-16", config()).facts["plan_id"] == nightly.facts["plan_id"]
    only = run(lake, "2026-03-16", config(), layers=["prefixes"])
    assert only.facts["plan_id"] == prepeak.facts["plan_id"]


def test_plan_for_one_tenant_is_not_current_for_all(lake: Lake) -> None:
    nightly = run(lake, DAY, config())
    add_day(lake, NEXT, **SAME)
    launch = run(lake, NEXT, config(), kind="launch", tenants=["nobody"], force=True)
    assert launch.facts["items"] == {"embeddings": 0, "responses": 0, "prefixes": 0}
    assert (
        launch.notes[0] == "embeddings: nothing to warm, no candidate is expected to be asked for"
    )
    add_day(lake, "2026-03-16", **SAME)
    assert run(lake, "2026-03-16", config()).facts["plan_id"] == nightly.facts["plan_id"]


def test_a_layer_that_a_budget_leaves_empty_says_which(lake: Lake) -> None:
    report = run(lake, DAY, config(plan={"budgets": {"kv_tokens": {"vllm-1": 1}}}))
    assert report.facts["items"]["prefixes"] == 0
    assert report.notes == ("prefixes: nothing to warm, kv_tokens/vllm-1 left no room",)


def test_incremental_adds_only_what_is_needed_to_catch_up(lake: Lake) -> None:
    first = run(lake, DAY, config())
    add_day(lake, NEXT, **{**SAME, "d": 0.8, "a": 4})
    report = run(lake, NEXT, config(), strategy="incremental")

    assert plan_meta(lake, report.facts["plan_id"])["base"] == first.facts["plan_id"]
    # Together c, d and a catch 17.8; a new plan of two would have caught 17.
    assert keys(lake, report, "responses") == ["a"]
    assert items(lake, report, "responses")[0]["expected_micro"] == 4_000_000
    left = report.facts["left_out"]["responses"]
    assert left == {"covered": 1, "redacted": 1}  # c and d are neither chosen nor left out
    # Prefixes live for minutes: what the base warmed is gone by the next day.
    assert keys(lake, report, "prefixes") == ["h", "long"]


def test_incremental_builds_on_a_chain_and_lets_it_run_out(lake: Lake) -> None:
    settings = config(
        layers={
            "responses": {"items": 2, "generate": 0, "ttl": "3d"},
            "weights": {"enabled": False},
            "adapters": {"enabled": False},
            "embeddings": {"enabled": False},
            "prefixes": {"enabled": False},
        }
    )
    first = run(lake, DAY, settings)
    add_day(lake, NEXT, **{**SAME, "d": 0.8, "a": 4})
    second = run(lake, NEXT, settings, strategy="incremental")
    assert keys(lake, second, "responses") == ["a"]
    # Two days later the first plan's items end within the day that is planned for.
    add_day(lake, "2026-03-16", **{**SAME, "a": 4})
    third = run(lake, "2026-03-16", settings, strategy="incremental", force=True)
    assert plan_meta(lake, third.facts["plan_id"])["base"] == second.facts["plan_id"]
    assert keys(lake, third, "responses") == []
    add_day(lake, "2026-03-17", **{**SAME, "a": 4})
    fourth = run(lake, "2026-03-17", settings, strategy="incremental", force=True)
    assert keys(lake, fourth, "responses") == ["c"]
    assert first.facts["plan_id"] != fourth.facts["plan_id"]


def test_incremental_without_a_plan_is_a_full_one(lake: Lake) -> None:
    report = run(lake, DAY, config(), strategy="incremental")
    assert report.facts["items"] == {"embeddings": 5, "responses": 2, "prefixes": 2}
    assert plan_meta(lake, report.facts["plan_id"])["base"] is None


def test_since_limits_demand(tmp_path: Path) -> None:
    made = fill(tmp_path, {BEFORE: day_of(BEFORE, a=9), DAY: day_of(DAY, d=1)})
    embed(made, DEGREES)
    assert keys(made, run(made, DAY, config(), since=DAY), "responses") == ["d"]
    assert keys(made, run(made, DAY, config()), "responses") == ["a", "d"]


def test_layers_on_a_host_need_no_vectors(tmp_path: Path) -> None:
    made = fill(tmp_path, {DAY: day_of(DAY, a=9)}, {DAY: [head("h", 9)]})
    assert run(made, DAY, config(), layers=["prefixes"]).facts["items"] == {"prefixes": 1}
    with pytest.raises(InputDataError, match="run `embed` first"):
        run(made, DAY, config())


def test_missing_stages_are_named_in_their_order(tmp_path: Path) -> None:
    empty = Lake(str(tmp_path / "empty"))
    with pytest.raises(InputDataError, match="run `distil` for it first"):
        run(empty, DAY, config())
    made = fill(tmp_path / "lake", {DAY: day_of(DAY, a=1)})
    made.drop("heat", {"day": DAY})
    embed(made, DEGREES)
    with pytest.raises(InputDataError, match="run `forecast` for it first"):
        run(made, DAY, config())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"strategy": "half"}, "no strategy"),
        ({"kind": "a-b"}, "no kind"),
        ({"layers": ["weight"]}, "no such layer: weight; there are .*embeddings"),
        ({"layers": []}, "no layer is enabled"),
        ({"since": "yesterday"}, "not a day"),
        ({"since": NEXT}, "nothing up to 2026-03-14 was asked since 2026-03-15"),
    ],
)
def test_wrong_arguments_are_named(lake: Lake, more: dict[str, Any], says: str) -> None:
    with pytest.raises(InputDataError, match=says):
        run(lake, DAY, config(), **more)


def test_manifest_says_what_the_plan_was_made_from(lake: Lake) -> None:
    report = run(lake, DAY, config())
    meta = plan_meta(lake, report.facts["plan_id"])
    assert (meta["day"], meta["kind"], meta["strategy"], meta["base"]) == (
        DAY,
        "nightly",
        "full",
        None,
    )
    assert meta["config"] == config().digest()
    assert meta["encoder"] == "enc"
    assert set(meta["inputs"]) == {
        f"prompts/{DAY}",
        f"heads/{DAY}",
        f"heat/{DAY}",
        f"vectors/enc/{DAY}",
    }
    assert meta["facts"] == json.loads(json.dumps(report.facts))
    assert plan_meta(lake, "no-such-plan") == {}
