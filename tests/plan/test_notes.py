"""A plan's notes follow from what is planned: nothing is called empty that holds something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.plan.building import DAY, embed, fill, head, prompt, rows_of
from tests.plan.test_budgets import apart, chosen, config, lake_of
from tests.targets.tiny_adapters import write_adapter
from warmup_lib.lake import Lake
from warmup_lib.plan.stage import run


def pinned_in(lake: Lake, root: Path, **columns: Any) -> dict[str, Any]:
    """Write a list of one request, and return the settings that read it."""
    path = root / "pinned.jsonl"
    path.write_text("{}")
    row = {"source": "pinned", "tenant": "acme", "model": "small", "text": "question p"}
    row |= {"response_digest": "p", "text_digest": "t-p", "context_digest": "ctx-p"}
    lake.replace("listed", {"day": DAY}, rows_of("listed", [{**row, **columns}]))
    return {"pinned": {"path": str(path)}}


def test_pinned_items_that_nobody_asks_for_are_something_to_warm(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [prompt("a", response=None)], [])
    sources = pinned_in(lake, tmp_path, response="given")
    report = run(lake, DAY, config({"sources": sources}))
    assert chosen(lake, report, "responses") == ["p"]
    assert report.facts["expected_hits"]["responses"] == 0.0
    assert report.notes == ()
    nothing = run(lake, DAY, config({}), kind="without")
    assert nothing.notes[0].startswith("responses: nothing to warm")


def test_a_layer_with_items_in_a_tier_alone_is_not_called_empty(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [prompt("a")], [head("h", 3)])
    off = {name: {"enabled": False} for name in ("queries", "intents")}
    settings = config({"sources": off}, embeddings={"enabled": True})
    report = run(lake, DAY, settings)
    tiers = report.facts["tiers"]
    assert report.facts["items"]["embeddings"] == tiers["L1"]["items"] == 1
    assert not [note for note in report.notes if note.startswith("embeddings:")]


def test_a_floor_that_budgets_leave_no_room_for_is_told(tmp_path: Path) -> None:
    big = [prompt(f"a{n}", 50 - n) for n in range(3)]
    small = [prompt(f"z{n}", 3, tenant="zeta", response="word " * 400) for n in range(3)]
    lake = lake_of(tmp_path, apart(*big, *small), [])
    plan = {"budgets": {"redis_bytes": 9_000}, "tenants": {"zeta": {"floor": 1.0}}}
    responses = {"generate": 0, "items": 6}
    report = run(lake, DAY, config(plan, responses=responses))
    [floor] = report.facts["floors"]
    assert (floor["part"], floor["tenant"], floor["floor"]) == ("responses", "zeta", 3)
    got = sum(digest[0] == "z" for digest in chosen(lake, report, "responses"))
    assert 1 <= got == floor["items"] < 3
    assert report.facts["short"] == 3 - got
    assert report.notes == (
        f"responses: zeta gets {got} of the 3 items that its floor asks for, the budgets have no "
        "room for more",
    )
    plan["budgets"] = {"redis_bytes": "1MB"}
    ample = run(lake, DAY, config(plan, responses=responses), kind="ample")
    assert (ample.facts["floors"], ample.facts["short"]) == ([], 0)
    said = "responses: zeta asks for 3 different items only, its floor would hold 6"
    assert ample.notes == (said,)


def test_a_floor_that_holds_more_than_its_tenant_asks_for_is_told(tmp_path: Path) -> None:
    rows = apart(
        *[prompt(f"a{n}", 9) for n in range(5)], prompt("z", 1, tenant="zeta", response="given")
    )
    lake = lake_of(tmp_path, rows, [])
    tenants = {"zeta": {"floor": 0.5}, "acme": {"floor": 0.4}}
    responses = {"generate": 0, "items": 4}
    report = run(lake, DAY, config({"tenants": tenants}, responses=responses))
    said = "responses: zeta asks for 1 different item only, its floor would hold 2"
    assert report.notes == (said,)
    assert chosen(lake, report, "responses") == ["a0", "a1", "a2", "z"]
    assert (report.facts["short"], report.facts["floors"]) == (0, [])
    later = run(lake, DAY, config({"tenants": tenants}, responses=responses), force=True)
    assert later.notes == (said,)


def test_layers_whose_items_belong_to_no_tenant_lack_nothing(tmp_path: Path) -> None:
    adapters = {"folders": {"law": write_adapter(tmp_path / "law", b"law")}}
    lake = lake_of(tmp_path, [prompt("a")], [head("h", 9, adapter="law")])
    settings = config(
        {"tenants": {"acme": {"floor": 1.0}}}, adapters=adapters, prefixes={"enabled": True}
    )
    report = run(lake, DAY, settings)
    assert report.facts["items"] == {"adapters": 1, "responses": 1, "prefixes": 1}
    assert report.notes == ()


def test_floors_and_caps_of_tenants_that_ask_for_nothing_are_told(tmp_path: Path) -> None:
    rows = apart(prompt("a"), prompt("z", tenant="zeta"))
    lake = lake_of(tmp_path, rows, [])
    tenants = {"ghost": {"floor": 0.5}, " acme": {"cap": 0.5}, "": {"floor": 0.1, "cap": 0.2}}
    settings = config({"tenants": {**tenants, "idle": {}}})
    report = run(lake, DAY, settings)
    assert report.notes == (
        "the floor of `ghost`: no such tenant in the log",
        "the cap of ` acme`: no such tenant in the log",
        "the floor and cap of ``: no such tenant in the log",
    )
    assert sorted(chosen(lake, report, "responses")) == ["a", "z"]
    some = run(lake, DAY, settings, tenants=["acme"], kind="some")
    assert some.notes == ()  # who else is in the log was not looked for


def test_a_backtest_of_what_traffic_keeps_warm_says_that_it_is_not_the_plan(
    tmp_path: Path,
) -> None:
    days = [f"2026-03-{number}" for number in (11, 12, 13, 14)]
    rows = [prompt("busy", 100), *(prompt(f"rare{n}", 1) for n in range(4))]
    lake = fill(tmp_path / "lake", dict.fromkeys(days, apart(*rows)))
    embed(lake, {row["text_digest"]: 20.0 * n for n, row in enumerate(rows)})
    requests = [
        {
            "request_id": f"{day}-{row['response_digest']}-{n}",
            "ts": row["last_ts"].replace(day=int(day[-2:]), minute=n % 60, second=n // 60),
            **{name: row[name] for name in ("tenant", "model", "text_digest", "response_digest")},
            **{"status": 200, "latency_ms": 900.0, "response": row["response"]},
        }
        for day in days
        for row in apart(*rows)
        for n in range(row["requests"])
    ]
    for day in days:
        ours = [one for one in requests if one["request_id"].startswith(day)]
        lake.replace("requests", {"day": day}, rows_of("requests", ours))
    settings = {"early_window": None}
    gateway = {"generate": 0, "gateway_writes": True, "items": 3, "ttl": "1h"}
    report = run(lake, DAY, config(settings, responses=gateway))
    assert report.facts["left_out"]["responses"]["kept_warm"] == 1
    roomy = {**settings, "budgets": {"redis_bytes": "100GB"}}
    same = run(lake, DAY, config(roomy, responses=gateway), kind="roomy")
    assert same.facts["left_out"] == report.facts["left_out"]
    assert "natural_traffic" in report.facts["left_out"]["responses"]
    [note] = [note for note in report.notes if "backtest" in note]
    assert note.startswith("responses: ")
    assert "1 that traffic keeps warm (kept_warm) are not planned" in note
