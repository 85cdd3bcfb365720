"""The user's lists join the demand, and each source proposes out of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.plan.building import DAY, ENCODER, embed, fill, head, prompt, rows_of
from warmup_lib.config import Config
from warmup_lib.layers.demand import Demand
from warmup_lib.plan.demand import read_demand
from warmup_lib.plan.sources.proposed import Proposals
from warmup_lib.plan.sources.proposing import propose

PINNED = {"pinned": {"path": "list.jsonl"}}


def with_sources(**sources: Any) -> Config:
    return Config.model_validate({"plan": {"sources": PINNED | sources}})


def listed(text: str | None, source: str = "pinned", **more: Any) -> dict[str, Any]:
    """One row of `listed`: its digests are those of `prompt`."""
    of_text = {"text": text, "response_digest": text, "text_digest": text and f"t-{text}"}
    return {
        "source": source,
        "position": 1,
        "tenant": "acme",
        "model": "small",
        "context_digest": text and "ctx",
        "head_digest": "none",
        "history": False,
        "redacted": False,
        **of_text,
        **more,
    }


def joined(
    folder: Path, rows: Sequence[dict[str, Any]], config: Config | None = None, **scope: Any
) -> tuple[Demand, Proposals]:
    logged = [prompt("a", 3), prompt("mute", 2, response=None)]
    lake = fill(folder, {DAY: logged}, {DAY: [head("h", 5)]})
    embed(lake, {"t-a": 0.0})
    lake.replace("listed", {"day": DAY}, rows_of("listed", rows))
    settings = config or with_sources()
    demand = read_demand(lake, DAY, settings, ENCODER, 4)
    return propose(lake, demand, settings, DAY, **scope)


def proposed(proposals: Proposals, source: str) -> list[str]:
    names = proposals.prompts["response_digest"].to_pylist()
    return [n for n, here in zip(names, proposals.by[source].prompts, strict=True) if here]


def test_what_the_log_lacks_is_added_without_heat(tmp_path: Path) -> None:
    rows = [
        listed("new", response="said", intent="pay", params='{"n":1}'),
        listed("a"),
        listed("new", response="again"),
        listed(None, head_digest="brief", system_prompt="Be brief."),
        listed("toned", head_digest="h", system_prompt="You are h."),
        listed("x", redacted=True),
    ]
    demand, proposals = joined(tmp_path, rows)
    found = {row["response_digest"]: row for row in demand.prompts.to_pylist()}
    assert list(found) == ["a", "mute", "new", "toned", "x"]
    new = found["new"]
    assert (new["heat_micro"], new["requests"], new["response"]) == (0, 0, "said")
    assert (new["intent"], new["params"], new["unwarmable"]) == ("pay", '{"n":1}', None)
    assert found["x"]["unwarmable"] == "redacted"
    assert found["a"]["heat_micro"] == 3_000_000
    heads = {row["head_digest"]: row for row in demand.heads.to_pylist()}
    assert list(heads) == ["h", "brief"]
    assert (heads["brief"]["system_prompt"], heads["brief"]["heat_micro"]) == ("Be brief.", 0)
    assert [found[name]["listed"] for name in found] == [True, False, True, True, True]
    assert proposed(proposals, "pinned") == ["a", "new", "toned", "x"]
    assert proposals.by["pinned"].heads.tolist() == [True, True]
    assert proposed(proposals, "queries") == proposed(proposals, "clusters") == ["a", "mute"]
    assert not proposals.by["queries"].heads.any()
    assert proposals.by["heads"].heads.tolist() == [True, False]


def test_a_listed_answer_goes_before_a_logged_one(tmp_path: Path) -> None:
    rows = [listed("a", response="better"), listed("a", response="late"), listed("mute")]
    demand, _ = joined(tmp_path, rows)
    assert demand.prompts["response"].to_pylist() == ["better", None]


def test_samples_ask_for_no_answer(tmp_path: Path) -> None:
    config = with_sources(few_shot={"classifiers": {"c": "x"}})
    rows = [listed("s", "few_shot", part="c", response="label"), listed("a", "few_shot", part="c")]
    demand, proposals = joined(tmp_path, rows, config)
    assert proposed(proposals, "few_shot") == ["a", "s"]
    assert demand.prompts["listed"].to_pylist() == [False, False, False]
    assert demand.prompts["response"].to_pylist() == ["answer a", None, "label"]


def test_a_source_that_is_off_and_what_is_out_of_scope_add_nothing(tmp_path: Path) -> None:
    rows = [listed("p"), listed("b", tenant="beta"), listed("m", model="large")]
    off = with_sources(pinned={"path": "list.jsonl", "enabled": False})
    demand, proposals = joined(tmp_path / "off", rows, off)
    assert demand.prompts["response_digest"].to_pylist() == ["a", "mute"]
    assert "pinned" not in proposals.by
    _, proposals = joined(tmp_path / "scope", rows, tenants=["acme"], models=["small"])
    assert proposed(proposals, "pinned") == ["p"]


def test_a_layer_gets_what_is_proposed_for_it(tmp_path: Path) -> None:
    """A text counts for all requests that hold it; a source only for its layers."""
    config = with_sources(few_shot={"classifiers": {"c": "x"}}, queries={"weight": 0.5})
    same_text = listed("other", text_digest="t-a")  # pinned under another context
    rows = [same_text, listed("s", "few_shot", part="c"), listed("p")]
    _, proposals = joined(tmp_path, rows, config)
    keys = ["t-a", "t-mute", "t-s", "t-p"]
    candidates = rows_of("plan", [{"tenant": "acme", "key_digest": key} for key in keys])
    kept, who = proposals.of("embeddings", None, candidates)
    assert kept["key_digest"].to_pylist() == keys
    assert [who.sources(n, True) for n in range(4)] == [
        ["queries", "pinned"],
        ["queries"],
        ["few_shot"],
        ["pinned"],
    ]
    assert who.weight.tolist() == [1.0, 0.5, 1.0, 1.0]
    assert who.quota == 1000
    assert who.logged.tolist() == [True, True, False, False]
    keys = ["a", "mute", "s", "p"]
    candidates = rows_of("plan", [{"tenant": "acme", "key_digest": key} for key in keys])
    kept, who = proposals.of("responses", None, candidates)
    assert kept["key_digest"].to_pylist() == ["a", "mute", "p"]
    kept, who = proposals.of("weights", None, candidates)
    assert (kept.num_rows, who.quota, who.sources(0, True)) == (4, None, None)
    assert np.all(who.logged)


def test_no_lists_leave_the_demand_as_it_is(tmp_path: Path) -> None:
    lake = fill(tmp_path, {DAY: [prompt("a", 3)]}, {DAY: [head("h", 5)]})
    demand = read_demand(lake, DAY, Config(), "", 0)
    same, _ = propose(lake, demand, Config(), DAY)
    assert same.prompts.drop_columns("listed") == demand.prompts
    assert same.heads == demand.heads
