"""Layers that share budgets are chosen from together; nothing goes beyond any of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.plan.building import BEFORE, DAY, embed, fill, head, heat, prompt, rows_of
from tests.targets.tiny_adapters import write_adapter
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.layers.spent import record
from warmup_lib.plan.current import plan_meta
from warmup_lib.plan.stage import run
from warmup_lib.stage import StageReport
from warmup_lib.tables import PLAN, RECEIPTS

NEXT = "2026-03-15"
OFF = {"enabled": False}


def config(plan: dict[str, Any], **layers: Any) -> Config:
    known = {"weights": OFF, "adapters": OFF, "embeddings": OFF, "prefixes": OFF}
    known["responses"] = {"generate": 0}
    return Config.model_validate({"layers": known | layers, "plan": plan})


def lake_of(root: Path, prompts: list[dict[str, Any]], heads: list[dict[str, Any]]) -> Lake:
    lake = fill(root / "lake", {DAY: prompts}, {DAY: heads})
    embed(lake, {row["text_digest"]: 90.0 * n for n, row in enumerate(prompts)})
    return lake


def chosen(lake: Lake, report: StageReport, layer: str) -> list[str]:
    rows = lake.read("plan", {"plan_id": report.facts["plan_id"]})
    return rows.filter(pc.equal(rows["layer"], layer))["key_digest"].to_pylist()


def left(lake: Lake, report: StageReport, layer: str) -> dict[str, str]:
    rows = lake.read("left_out", {"plan_id": report.facts["plan_id"]}).to_pylist()
    return {row["digest"]: row["reason"] for row in rows if row["layer"] == layer}


def apart(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Each prompt in a context of its own: none serves another."""
    return [row | {"context_digest": f"ctx-{n}"} for n, row in enumerate(rows)]


def test_memory_goes_to_what_saves_the_most_for_its_bytes(tmp_path: Path) -> None:
    long = {"response": "word " * 4000}  # about 36 kB where the others take 1.8 kB
    rows = apart(prompt("a", 9, **long), prompt("b", 8), prompt("c", 7), prompt("d", 6))
    lake = lake_of(tmp_path, rows, [])
    report = run(lake, DAY, config({"budgets": {"redis_bytes": 10_000}}))
    assert chosen(lake, report, "responses") == ["b", "c", "d"]
    assert left(lake, report, "responses") == {"a": "below_budget: redis_bytes"}
    budget = report.facts["budgets"]["redis_bytes"]
    assert budget["limit"] == 10_000
    assert budget["used"] == report.facts["bytes"]["responses"] <= 10_000
    assert report.facts["saved_s"] == report.facts["planned"]["responses"]["saved_s"] == 21.0
    assert (report.facts["gap"], report.facts["short"]) == (0.0, 0)
    assert report.facts["left_out"]["responses"] == {"below_budget": 1}


def test_layers_compete_for_memory_by_what_a_hit_of_each_saves(tmp_path: Path) -> None:
    # An answer saves 1,000 ms, a vector 5: 30 requests for a text are worth less than 1 answer.
    rows = apart(prompt("a", 1), prompt("n", 30, response=None))
    lake = lake_of(tmp_path, rows, [])
    embeddings = {"enabled": True}
    ample = config({"budgets": {"redis_bytes": "1MB"}}, embeddings=embeddings)
    assert run(lake, DAY, ample).facts["items"] == {"embeddings": 2, "responses": 1}
    tight = config({"budgets": {"redis_bytes": 1_650}}, embeddings=embeddings)
    report = run(lake, DAY, tight)
    assert chosen(lake, report, "responses") == ["a"]
    assert chosen(lake, report, "embeddings") == []


def test_tenants_have_floors_and_caps(tmp_path: Path) -> None:
    big = [prompt(f"a{n}", 50 - n) for n in range(6)]
    small = [prompt(f"z{n}", 3 - n, tenant="zeta") for n in range(3)]
    lake = lake_of(tmp_path, apart(*big, *small), [])
    responses = {"generate": 0, "items": 5}
    plain = run(lake, DAY, config({"tenants": {"acme": {"cap": 1.0}}}, responses=responses))
    assert chosen(lake, plain, "responses") == ["a0", "a1", "a2", "a3", "a4"]
    floor = run(lake, DAY, config({"tenants": {"zeta": {"floor": 0.4}}}, responses=responses))
    assert chosen(lake, floor, "responses") == ["a0", "a1", "a2", "z0", "z1"]
    assert left(lake, floor, "responses")["a3"] == "below_budget: items"
    cap = run(lake, DAY, config({"tenants": {"acme": {"cap": 0.6}}}, responses=responses))
    assert chosen(lake, cap, "responses") == ["a0", "a1", "a2", "z0", "z1"]
    none = run(lake, DAY, config({"tenants": {"acme": {"cap": 0.2}}}, responses=responses))
    assert chosen(lake, none, "responses") == ["a0", "z0", "z1", "z2"]
    assert left(lake, none, "responses")["a1"] == "below_budget: tenant_cap"


def test_a_floor_that_its_tenant_can_not_fill_is_no_reason_to_leave_room(tmp_path: Path) -> None:
    rows = apart(*[prompt(f"a{n}", 9) for n in range(5)], prompt("z", 1, tenant="zeta"))
    lake = lake_of(tmp_path, rows, [])
    floor = config({"tenants": {"zeta": {"floor": 0.5}}}, responses={"generate": 0, "items": 4})
    report = run(lake, DAY, floor)
    assert chosen(lake, report, "responses") == ["a0", "a1", "a2", "z"]
    assert report.facts["short"] == 0


def test_shares_are_of_what_the_layer_can_hold_and_not_of_its_limit(tmp_path: Path) -> None:
    # 2,000 items may be planned, 10 have room: 5 % of 2,000 would be all that there is.
    big = [prompt(f"a{n}", 50 - n) for n in range(14)]
    small = [prompt(f"z{n}", 40 - n, tenant="zeta") for n in range(14)]
    lake = lake_of(tmp_path, apart(*big, *small), [])

    def of_zeta(**share: float) -> tuple[int, int, float]:
        plan = {"budgets": {"redis_bytes": 16_500}, "tenants": {"zeta": share}}
        report = run(lake, DAY, config(plan), kind="shares")
        digests = chosen(lake, report, "responses")
        return sum(one[0] == "z" for one in digests), len(digests), report.facts["saved_s"]

    assert of_zeta(cap=1.0) == (0, 10, 455.0)  # 50 + 49 + ... + 41
    assert of_zeta(floor=0.05) == (0, 10, 455.0)
    # z0 to z2 are asked for 40 + 39 + 38 times, the a7 to a9 that they replace 43 + 42 + 41.
    assert of_zeta(floor=0.3) == (3, 10, 446.0)
    assert of_zeta(floor=0.3, cap=0.3) == (3, 10, 446.0)


def test_a_cap_binds_where_candidates_are_fewer_than_the_limit(tmp_path: Path) -> None:
    big = [prompt(f"a{n}", 50 - n) for n in range(8)]
    small = [prompt(f"z{n}", 3, tenant="zeta") for n in range(2)]
    lake = lake_of(tmp_path, apart(*big, *small), [])
    for cap, left_of_it in ((0.5, 5), (0.05, 1), (0.0, 0)):
        report = run(lake, DAY, config({"tenants": {"acme": {"cap": cap}}}))
        digests = chosen(lake, report, "responses")
        assert sorted(digests) == sorted([*(f"a{n}" for n in range(left_of_it)), "z0", "z1"])


def test_no_cluster_takes_more_than_its_share(tmp_path: Path) -> None:
    rows = apart(*[prompt(f"a{n}", 9) for n in range(4)], prompt("b", 1), prompt("c", 1))
    lake = lake_of(tmp_path, rows, [])
    settings = config({"cluster_cap": 0.5}, responses={"generate": 0, "items": 4})
    with pytest.raises(InputDataError, match="run `cluster` for it first"):
        run(lake, DAY, settings)
    members = [
        {"cluster_id": "acme-0" if row["response_digest"][0] == "a" else "acme-1"}
        | {name: row[name] for name in ("tenant", "text_digest")}
        for row in rows
    ]
    lake.replace("members", {"day": DAY}, rows_of("members", members))
    report = run(lake, DAY, settings)
    assert chosen(lake, report, "responses") == ["a0", "a1", "b", "c"]
    assert left(lake, report, "responses") == {
        "a2": "below_budget: cluster_cap",
        "a3": "below_budget: cluster_cap",
    }


SHARED = "You are the assistant of a shop. " * 60  # 1,980 characters: 30 blocks, 480 tokens


def test_blocks_that_heads_share_are_paid_for_once(tmp_path: Path) -> None:
    heads = [
        head("one", 5, system_prompt=SHARED + "One. " * 64),
        head("two", 4, system_prompt=SHARED + "Two. " * 64),
        head("other", 6, system_prompt="Another shop, another head. " * 100),
    ]
    lake = lake_of(tmp_path, [prompt("a")], heads)
    # one and two take 480 + 80 and then 80 more; other takes 688.
    for tokens, expected in (
        (655, ["one", "two"]),
        (600, ["one"]),
        (1400, ["other", "one", "two"]),
    ):
        settings = config(
            {"budgets": {"kv_tokens": {"vllm-1": tokens}}}, prefixes={"enabled": True}
        )
        report = run(lake, DAY, settings, layers=["prefixes"])
        assert chosen(lake, report, "prefixes") == expected
        assert report.facts["budgets"]["kv_tokens/vllm-1"]["used"] <= tokens
    left_out = left(lake, run(lake, DAY, settings, layers=["prefixes"], kind="again"), "prefixes")
    assert left_out == {}


def test_time_is_a_budget_of_each_kind_of_target(tmp_path: Path) -> None:
    rows = apart(*[prompt(f"a{n}", 9 - n) for n in range(5)])
    lake = lake_of(tmp_path, rows, [])
    lake_second = config({"budgets": {"seconds": "1s"}})
    # A millisecond an answer where nothing was measured: all fit.
    report = run(lake, DAY, lake_second)
    assert report.facts["budgets"]["seconds/redis"] == {"limit": 1.0, "used": 0.005}
    assert report.facts["planned"]["responses"]["from"] == "default"
    assert report.facts["planned"]["responses"]["seconds"] == 0.005


def test_a_head_is_warmed_with_its_adapter_or_not_at_all(tmp_path: Path) -> None:
    folders = {"law": write_adapter(tmp_path / "law", b"law")}
    heads = [head("base", 3), head("adapted", 9, adapter="law")]
    lake = lake_of(tmp_path, [prompt("a")], heads)
    kinds = ["adapters", "prefixes"]
    for seconds, adapters, expected in (
        ("10s", 1, ["adapted", "base"]),
        ("4s", 0, ["base"]),
    ):
        settings = config(
            {"budgets": {"seconds": seconds}},
            adapters={"folders": folders},
            prefixes={"enabled": True},
        )
        old = {"day": BEFORE, "sequence": 1, "layers": []}
        lake.replace("plan", {"plan_id": "old"}, PLAN.empty(), old)
        lake.replace("receipts", {"plan_id": "old"}, RECEIPTS.empty())
        took = {"items": 1, "seconds": 5.0, "bytes": 0, "tokens": 0}
        record(lake, "old", {"adapters": {"host": took}})
        report = run(lake, DAY, settings, layers=kinds, force=True)
        assert report.facts["items"] == {"adapters": adapters, "prefixes": len(expected)}
        assert chosen(lake, report, "prefixes") == expected
    assert left(lake, report, "prefixes") == {"adapted": "below_budget: seconds/host"}
    assert report.facts["budgets"]["seconds/host"]["limit"] == 4.0


def test_what_is_pinned_goes_first(tmp_path: Path) -> None:
    rows = apart(prompt("a", 9), prompt("b", 8), prompt("c", 1))
    lake = lake_of(tmp_path, rows, [])
    path = tmp_path / "pinned.jsonl"
    path.write_text("{}")
    row = {"source": "pinned", "tenant": "acme", "model": "small", "text": "question c"}
    row |= {"response_digest": "c", "text_digest": "t-c", "context_digest": "ctx-2"}
    lake.replace("listed", {"day": DAY}, rows_of("listed", [row]))
    settings = config(
        {"budgets": {"redis_bytes": 3_300}, "sources": {"pinned": {"path": str(path)}}}
    )
    report = run(lake, DAY, settings)
    assert chosen(lake, report, "responses") == ["c", "a"]
    assert report.facts["gap"] == 0.0


def test_warm_items_keep_their_room(tmp_path: Path) -> None:
    rows = apart(*[prompt(f"a{n}", 9 - n) for n in range(4)])
    lake = lake_of(tmp_path, rows, [])
    settings = config({"budgets": {"redis_bytes": 5_000}})  # three answers
    first = run(lake, DAY, settings)
    assert chosen(lake, first, "responses") == ["a0", "a1", "a2"]
    lake.replace("prompts", {"day": NEXT}, rows_of("prompts", rows))
    lake.replace("heads", {"day": NEXT}, rows_of("heads", []))
    counts = {"a0": 9.0, "a1": 8, "a2": 1, "a3": 30}
    heat(lake, NEXT, {("prompt", "acme", digest): n for digest, n in counts.items()})
    fuller = config({"budgets": {"redis_bytes": 7_000}})
    again = run(lake, NEXT, fuller, strategy="incremental")
    assert plan_meta(lake, again.facts["plan_id"])["base"] == first.facts["plan_id"]
    assert chosen(lake, again, "responses") == ["a3"]
    budget = again.facts["budgets"]["redis_bytes"]
    assert budget["limit"] == 7_000 - first.facts["bytes"]["responses"]
    tight = run(lake, NEXT, settings, strategy="incremental", force=True)
    assert chosen(lake, tight, "responses") == []


def test_the_same_lake_gives_the_same_plan_under_budgets(tmp_path: Path) -> None:
    rows = apart(*[prompt(f"a{n}", 1 + n % 3) for n in range(30)])
    lake = lake_of(tmp_path, rows, [head("h", 9)])
    settings = config({"budgets": {"redis_bytes": 20_000}, "tenants": {"acme": {"cap": 0.7}}})
    first, again = run(lake, DAY, settings), run(lake, DAY, settings)
    assert first.facts == again.facts
    assert first.facts["items"]["responses"] == 8  # of the 12 that there is room for


def test_without_budgets_only_the_items_are_limited(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, apart(prompt("a", 2), prompt("b", 1)), [])
    report = run(lake, DAY, config({}, responses={"generate": 0, "items": 1}))
    assert report.facts["budgets"] == {"items/responses": {"limit": 1, "used": 1}}
    assert "gap" not in report.facts
    assert left(lake, report, "responses") == {"b": "below_budget"}
    assert report.facts["figures"] == {"answer_ms": "default", "token_ms": "default"}
