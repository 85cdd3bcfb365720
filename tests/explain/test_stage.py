"""A window is explained whole: rows, counts, what is needed before, and what is down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.apply.memory import MemoryTarget, plan_table
from tests.explain.made import ENCODER, KEYS, PLACES, QUESTION, asked, item, looked, row_of
from tests.explain.test_unplanned import Angles, no_vectors
from warmup_lib.causes import Cause
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.evidence import Evidence, Looked
from warmup_lib.explain.stage import explain, run
from warmup_lib.keys import key_hash
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.stage import StageReport
from warmup_lib.tables import HITS, LEFT_OUT, RECEIPTS, REQUESTS
from warmup_lib.verify.measuring import Subject
from warmup_lib.verify.window import from_lake

DAY, LATER = "2026-03-15", "2026-03-16"
OWN = PLACES.answer(QUESTION, asked().response_digest)
ITEMS = [item(), item(layer="embeddings")]


def table(schema: pa.Schema, *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(schema.names) | r for r in rows], schema=schema)


def requests(lake: Lake, *rows: dict[str, Any]) -> None:
    flags = dict.fromkeys(["warmup", "health", "cache_hit"], False)
    made = table(REQUESTS.schema, *[flags | row for row in rows])
    lake.replace("requests", {"day": LATER}, made)


def replay(lake: Lake, *hits: tuple[str, bool], window: str = LATER) -> None:
    rows = [
        {"request_id": ident, "tenant": "acme", "ts": asked().ts, "layer": layer, "hit": served}
        for ident, hit in hits
        for layer, served in (("responses", hit), ("embeddings", True))
    ]
    made = table(HITS.schema, *[row | {"target": "redis"} for row in rows])
    lake.replace("hits", {"plan_id": "p", "window": window}, made)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(f"file://{tmp_path}/lake")
    lake.replace("plan", {"plan_id": "p"}, plan_table(ITEMS), {"day": DAY, "base": None})
    lake.replace("left_out", {"plan_id": "p"}, LEFT_OUT.empty())
    requests(lake, row_of(asked()))
    return lake


def go(
    lake: Lake, target: MemoryTarget | None = None, items: Sequence[PlanItem] = ITEMS
) -> StageReport:
    context = Context("p", Config(), KEYS, Angles())
    targets: Any = [target or MemoryTarget("redis")]
    subject = Subject(lake, items, DAY, (), targets, context)
    window = from_lake(lake, LATER, DAY)
    return asyncio.run(explain(subject, window, no_vectors))


def causes(lake: Lake) -> dict[tuple[str, str], str]:
    rows = lake.read("causes", {"plan_id": "p", "window": LATER}).to_pylist()
    return {(row["request_id"], row["layer"]): row["cause"] for row in rows}


def test_a_window_is_explained_by_gateway_and_replay_together(lake: Lake) -> None:
    right = Evidence((looked(OWN), Looked("embeddings", "hit", "v")))
    other = asked(request_id="r2")
    past = asked(request_id="r3", bypass=True, cache_control="no-cache")
    flagged = asked(request_id="r4", bypass=True)
    blind = asked(request_id="r5")
    requests(
        lake,
        row_of(asked(), right),
        row_of(other._replace(source="silent")),
        row_of(past, Evidence(bypass="header")),
        row_of(flagged),
        row_of(blind, Evidence()),
    )
    replay(lake, ("r1", False), ("r2", False))
    report = go(lake)
    assert causes(lake) == {
        ("r1", "responses"): Cause.NOT_APPLIED,
        ("r2", "responses"): Cause.NOT_APPLIED,
        ("r3", "responses"): Cause.BYPASS_HEADER,
        ("r3", "embeddings"): Cause.BYPASS_HEADER,
        ("r4", "responses"): Cause.BYPASS_PARAMETER,
        ("r4", "embeddings"): Cause.BYPASS_PARAMETER,
        ("r5", "responses"): Cause.BYPASS_MIDDLEWARE,
        ("r5", "embeddings"): Cause.BYPASS_MIDDLEWARE,
    }
    facts = report.facts
    assert (facts["misses"], facts["requests"], facts["unknown_share"]) == (8, 5, 0.0)
    assert list(facts["causes"].values()) == [2, 2, 2, 2]
    assert facts["by_layer"]["embeddings"] == dict.fromkeys(
        ["bypass_header", "bypass_middleware", "bypass_parameter"], 1
    )
    assert {one["link"] for one in facts["remedies"]} >= {"docs/causes.md#not_applied"}
    assert (report.rows_in, report.rows_out, report.notes) == (5, 8, ())


def test_a_row_says_which_item_and_key_and_by_whose_word(lake: Lake) -> None:
    requests(lake, row_of(asked(), Evidence((looked("wu1:other:key"),))))
    go(lake)
    requests(lake, row_of(asked()))
    replay(lake, ("r1", False))
    go(lake)
    [row] = lake.read("causes", {"plan_id": "p", "window": LATER}).to_pylist()
    assert row["item_id"] == ITEMS[0].item_id
    assert (row["source"], row["key_hash"]) == ("replay", key_hash(OWN))
    assert row["evidence"] == "receipt=none"


def test_a_wrong_key_names_the_item_that_it_did_not_find(lake: Lake) -> None:
    wrong = PLACES.answer(QUESTION, KEYS.digest("response", asked().context_digest, "cut"))
    requests(lake, row_of(asked(), Evidence((looked(wrong, fields=("hour",)),))))
    go(lake)
    [row] = lake.read("causes", {"plan_id": "p", "window": LATER}).to_pylist()
    assert (row["cause"], row["item_id"]) == (Cause.KEY_DIMENSION, ITEMS[0].item_id)
    assert row["key_hash"] == key_hash(wrong)


def test_a_host_that_was_asked_for_another_adapter_names_the_head(lake: Lake) -> None:
    hit = looked(OWN, found="hit")
    seen = Evidence((hit,), host="vllm-1", host_ready=True, adapter="another")
    requests(lake, row_of(asked(cached_tokens=0), seen))
    head = item(layer="prefixes")
    go(lake, items=[*ITEMS, head])
    rows = lake.read("causes", {"plan_id": "p", "window": LATER}).to_pylist()
    [row] = [row for row in rows if row["layer"] == "prefixes"]
    assert (row["cause"], row["item_id"]) == (Cause.KEY_ADAPTER, head.item_id)


def test_a_day_of_the_lake_is_marked_as_one_and_as_later_than_the_plan(lake: Lake) -> None:
    replay(lake, ("r1", False))
    go(lake)
    manifest = lake.manifest("causes", {"plan_id": "p", "window": LATER})
    assert manifest is not None
    assert manifest.meta == {"whole_day": True, "in_sample": False}


def test_hits_and_our_own_traffic_have_no_cause(lake: Lake) -> None:
    ours = row_of(asked(request_id="warmup-1")) | {"warmup": True}
    requests(lake, row_of(asked()), ours)
    replay(lake, ("r1", True), ("warmup-1", False))
    report = go(lake)
    assert report.facts["misses"] == 0
    assert report.notes == (f"no request of {LATER} missed: there is nothing to explain",)


def test_a_window_that_nobody_saw_has_to_be_verified_first(lake: Lake) -> None:
    with pytest.raises(InputDataError, match=r"1 requests of 2026-03-16 .* `warmup verify` plan p"):
        go(lake)
    requests(lake, row_of(asked(), Evidence((looked(OWN),))))
    assert go(lake).facts["causes"] == {"not_applied": 1}


def test_what_a_target_lost_is_told_without_it_when_it_is_down(lake: Lake) -> None:
    replay(lake, ("r1", False))
    gone = {
        "item_id": ITEMS[0].item_id,
        "layer": "responses",
        "target": "redis",
        "status": "failed",
        "error": "refused",
        "at": asked().ts,
    }
    lake.replace("receipts", {"plan_id": "p"}, table(RECEIPTS.schema, gone))
    report = go(lake, MemoryTarget("redis", down=True))
    assert report.facts["causes"] == {"apply_failed": 1}
    assert report.facts["unavailable"] == [{"target": "redis", "reason": "no connection"}]
    assert "target 'redis' did not answer" in report.notes[0]


def test_bad_calls_say_what_to_do(lake: Lake, tmp_path: Path) -> None:
    config = Config(lake=lake.uri)
    with pytest.raises(InputDataError, match="no such plan: nope; there are p"):
        asyncio.run(run(lake, "nope", config, KEYS, day=LATER))
    with pytest.raises(InputDataError, match="a day or a requests file"):
        asyncio.run(run(lake, "p", config, KEYS))
    with pytest.raises(InputDataError, match="not both"):
        asyncio.run(run(lake, "p", config, KEYS, day=LATER, requests=tmp_path / "x"))
    with pytest.raises(InputDataError, match="no requests of 2026-03-20"):
        asyncio.run(run(lake, "p", config, KEYS, day="2026-03-20"))
    assert Angles.encoder == ENCODER


PAGE = Path(__file__).parents[2] / "docs" / "causes.md"


@pytest.mark.parametrize("cause", list(Cause))
def test_each_cause_has_a_section_that_its_link_leads_to(cause: Cause) -> None:
    assert cause.link == f"docs/causes.md#{cause.value}"
    sections = PAGE.read_text().split("\n## ")
    [section] = [one for one in sections if one.startswith(f"{cause.value}\n")]
    assert "**To do:**" in section
