"""On the sample log: a source that is switched off takes with it what only it proposed."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from samples.parameters import MODEL
from tests.plan.conftest import Sample
from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.plan.sources.registry import SOURCES

LAYERS = ("embeddings", "responses", "prefixes")
LOGGED = {"queries", "clusters", "heads"}
ACME = {"tenant": "acme-bank", "model": MODEL}
Items = dict[str, dict[str, Any]]


class Planner:
    """Plans the sample's last day with all sources but some."""

    def __init__(self, sample: Sample, sources: Mapping[str, Any]) -> None:
        self._sample = sample
        self._sources = sources

    def config(self, *off: str, **plan: Any) -> Config:
        sources = {
            name: {**self._sources.get(name, {}), "enabled": name not in off} for name in SOURCES
        }
        return Config.model_validate(
            {"lake": self._sample.lake, "plan": {"sources": sources, **plan}}
        )

    def planned(self, *off: str, **plan: Any) -> tuple[Items, Mapping[str, Any]]:
        config = self.config(*off, **plan)
        report = pipeline.plan(config, self._sample.last, force=True, layers=LAYERS)
        rows = Lake(config.lake).read("plan", {"plan_id": report.facts["plan_id"]}).to_pylist()
        return {row["item_id"]: row for row in rows}, report.facts

    def items(self, *off: str) -> Items:
        return self.planned(*off)[0]


@pytest.fixture(scope="module")
def planner(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Planner:
    folder = tmp_path_factory.mktemp("lists")
    logged = _logged(sample)
    sentences = [{**ACME, "prompt": f"Frase numero {n} per la prova"} for n in range(30)]
    form = "Answer as a table with the columns date, shop and sum, in euro. " * 9
    made = Planner(
        sample,
        {
            "languages": {
                "sets": {
                    "it": _written(folder / "it.jsonl", sentences),
                    "pt": _written(folder / "pt.jsonl", _prompts("Pergunta", 5)),
                }
            },
            "output_templates": {
                "path": _written(
                    folder / "forms.jsonl",
                    [{**row, "system_prompt": form} for row in _prompts("Report of month", 4)],
                )
            },
            "pinned": {"path": _written(folder / "pinned.jsonl", [*_prompts("Fee", 9), *logged])},
            "few_shot": {
                "classifiers": {
                    "router": _written(
                        folder / "samples.jsonl",
                        [{**row, "intent": "card_lost"} for row in _prompts("Sample", 20)],
                    )
                }
            },
            # At this size the log has few requests, and no more prompts than fit.
            "system_prompts": {"requests": 10},
            "queries": {"limit": 60},
            "clusters": {"limit": 50},
            "heads": {"limit": 60},
        },
    )
    for stage in ("documents", "embed"):
        pipeline.day_stage(stage, made.config(), sample.last)
    return made


def _prompts(word: str, count: int) -> list[dict[str, Any]]:
    return [{**ACME, "prompt": f"{word} {'x' * n} please"} for n in range(count)]


def _written(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def _logged(sample: Sample) -> list[dict[str, Any]]:
    """Return a few first turns of the log as it was written, to be pinned."""
    rows = [
        json.loads(line) for line in gzip.decompress(sample.files[-1].read_bytes()).splitlines()
    ]
    kept = (
        *("tenant", "model", "model_revision", "adapter"),
        *("prompt", "system_prompt", "tools", "params"),
    )
    first = {
        row["prompt"]: {name: row[name] for name in kept if row.get(name) is not None}
        for row in rows
        if row["tenant"] == ACME["tenant"] and row.get("intent") and not row.get("messages")
    }
    return list(first.values())[:40]


@pytest.fixture(scope="module")
def whole(planner: Planner) -> Items:
    return planner.items()


def test_every_source_proposes_and_keeps_its_limit(whole: Items) -> None:
    counts = Counter(
        (source, row["tier"] or row["layer"])
        for row in whole.values()
        for source in row["sources"] or ()
    )
    assert {source for source, _ in counts} == set(SOURCES)
    of_log = {name: {k[1]: n for k, n in counts.items() if k[0] == name} for name in LOGGED}
    assert of_log["queries"] == {"embeddings": 60}
    assert of_log["clusters"] == {"responses": 50}
    assert set(of_log["heads"]) == {"L1", "prefixes"}
    assert 3 <= counts["intents", "responses"] <= 50 * 3
    assert 1 <= counts["system_prompts", "L1"] <= 3
    assert counts["languages", "responses"] == 20 + 5
    assert counts["output_templates", "prefixes"] == 1
    assert counts["few_shot", "embeddings"] == 20
    assert ("few_shot", "responses") not in counts
    assert 9 + 30 <= counts["pinned", "responses"] <= 9 + 40  # some were failed or redacted
    both = [row for row in whole.values() if {"clusters", "pinned"} <= set(row["sources"] or ())]
    assert len(both) > 0


@pytest.mark.parametrize("source", SOURCES)
def test_switching_a_source_off_removes_exactly_its_own_items(
    planner: Planner, whole: Items, source: str
) -> None:
    without = planner.items(source)
    own = _only(whole, source)
    assert set(whole) - set(without) == own
    assert set(without) <= set(whole)
    _no_other_credit_changed(whole, without, source)
    if source != "system_prompts":  # the log asks for these too
        assert own


ROOMY = {
    "budgets": {"redis_bytes": "100GB", "seconds": "1h", "kv_tokens": {"vllm-1": 10**9}},
    "tenants": {"ghost": {"floor": 0.1}, "codeforge": {"floor": 0.01, "cap": 0.95}},
}


@pytest.fixture(scope="module")
def roomy(planner: Planner) -> Items:
    return planner.planned(**ROOMY)[0]


@pytest.mark.parametrize("source", SOURCES)
def test_budgets_that_hold_everything_change_nothing_about_that(
    planner: Planner, roomy: Items, source: str
) -> None:
    without, _ = planner.planned(source, **ROOMY)
    assert set(roomy) - set(without) == _only(roomy, source)
    assert set(without) <= set(roomy)
    _no_other_credit_changed(roomy, without, source)


TIGHT = {"budgets": {"redis_bytes": "300kB"}, "tenants": {"codeforge": {"cap": 0.1}}}


@pytest.fixture(scope="module")
def tight(planner: Planner) -> Items:
    items, facts = planner.planned(**TIGHT)
    budget = facts["budgets"]["redis_bytes"]
    assert 0.9 * budget["limit"] < budget["used"] <= budget["limit"]
    assert 0 <= facts["gap"] <= 0.01
    return items


@pytest.mark.parametrize("source", SOURCES)
def test_where_budgets_are_full_no_item_of_another_source_is_lost(
    planner: Planner, tight: Items, source: str
) -> None:
    without, facts = planner.planned(source, **TIGHT)
    gone = set(tight) - set(without)
    assert gone >= _only(tight, source)
    others = {tuple(tight[item]["sources"] or ()) for item in gone - _only(tight, source)}
    # What lists name and nobody asks for has room only where it is pinned.
    assert all("pinned" in names for names in others)
    assert not others or source == "pinned"
    assert 0 <= facts["gap"] <= 0.01
    _no_other_credit_changed(tight, without, source)


def _only(items: Items, source: str) -> set[str]:
    return {item for item, row in items.items() if row["sources"] == [source]}


def _no_other_credit_changed(whole: Items, without: Items, source: str) -> None:
    for item in whole.keys() & without.keys():
        named = whole[item]["sources"]
        assert without[item]["sources"] == (named and [name for name in named if name != source])


def test_without_the_log_the_best_system_prompts_stand_alone(planner: Planner) -> None:
    """Their arms' scores are composed: in the sample `warm` is the better of acme-bank's arms."""
    others = [name for name in SOURCES if name != "system_prompts"]
    items = [row for row in planner.items(*others).values() if row["sources"]]
    assert {tuple(row["sources"]) for row in items} == {("system_prompts",)}
    heads = {row["key_digest"] for row in items}
    assert 1 <= len(heads) <= 3


def test_no_item_says_why_in_the_words_of_its_text(whole: Items) -> None:
    for row in whole.values():
        assert row["text"] is None or row["text"] not in row["reason"]
    unasked = [row for row in whole.values() if not row["expected_micro"]]
    assert {row["reason"] for row in unasked} == {"no request for it is expected"}
    assert all(set(row["sources"]) - LOGGED for row in unasked)
