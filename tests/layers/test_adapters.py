"""Adapters are planned by demand, served under their content, and resident only by evidence."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.layers.building import (
    DictVectors,
    context,
    demand,
    head,
    items,
    lookup,
    new_keys,
    prompt,
)
from tests.targets.tiny_adapters import write_adapter
from tests.targets.tiny_host import MODEL, TinyHost
from warmup_lib.config import Config
from warmup_lib.errors import HostUnavailable
from warmup_lib.layers.adapters import Adapters, served_name
from warmup_lib.layers.base import SHARED, Arranged, Context, Outcome, PlanItem, Proof
from warmup_lib.layers.folders import content_hash
from warmup_lib.tables import MICRO
from warmup_lib.targets.host import ModelHost

LAYER = Adapters()
KEYS = new_keys()
Run = Callable[[Callable[[ModelHost], Awaitable[Any]]], Any]


@pytest.fixture
def run(tiny: TinyHost, with_host: Any) -> Run:
    return lambda work: with_host(tiny.url, work)


def settings(folders: dict[str, str], **adapters: Any) -> Config:
    layers = {"adapters": {"folders": folders, **adapters}}
    return Config.model_validate({"targets": [], "layers": layers})


def config_of(tmp_path: Path, *names: str, **adapters: Any) -> Config:
    return settings({n: write_adapter(tmp_path / n, n.encode()) for n in names}, **adapters)


def planned(config: Config, *names: str) -> list[PlanItem]:
    heads = [head(KEYS, "t", "s", 9 - n, adapter=name) for n, name in enumerate(names)]
    of_name = {i.adapter: i for i in items(LAYER, demand(heads=heads), config)}
    return [of_name[name] for name in names]


def ctx(config: Config, plan: Sequence[PlanItem], *, complete: bool = True) -> Context:
    served = {i.adapter: name(i) for i in plan}
    return context(KEYS, DictVectors(), config, adapters=served, complete=complete)


def name(item: PlanItem) -> str:
    return served_name(item.adapter or "", item.key_digest)


# -- the plan ------------------------------------------------------------------------------------


def test_one_item_an_adapter_with_the_heat_of_all_tenants(tmp_path: Path) -> None:
    config = config_of(tmp_path, "cards", "loans")
    headless = prompt(KEYS, "acme", "hi", 5, adapter="cards")
    with_head = prompt(KEYS, "acme", "hi", 7, adapter="cards", system_prompt="s")
    heads = [
        head(KEYS, "acme", "s", 8, adapter="cards"),
        head(KEYS, "globex", "s", 2, adapter="cards", model="other"),
        head(KEYS, "globex", "s", 4, adapter="loans"),
        head(KEYS, "globex", "s", 99),
    ]
    cards, loans = items(LAYER, demand([headless, with_head], heads), config)
    assert (cards.adapter, cards.model, cards.heat_micro) == ("cards", "m", 15 * MICRO)
    assert (loans.adapter, loans.heat_micro) == ("loans", 4 * MICRO)
    content = content_hash(config.layers.adapters.folders["cards"])
    assert cards.key_digest == cards.source_digest == content
    assert name(cards) == f"cards-{content[:12]}"
    assert (cards.tenant, cards.bytes, cards.ttl_s) == (SHARED, len(b"cards") + 8, 6 * 3600)


def test_an_adapter_without_a_readable_folder_is_refused_by_name(tmp_path: Path) -> None:
    config = config_of(tmp_path, "cards", "broken")
    (tmp_path / "broken" / "adapter_config.json").unlink()
    of = demand(heads=[head(KEYS, "t", "s", 3, adapter=n) for n in ("cards", "broken", "away")])
    refused = {(r["digest"], r["reason"]) for r in LAYER.refused(of, config).to_pylist()}
    assert refused == {("broken", "unreadable_folder"), ("away", "no_folder")}
    assert [i.adapter for i in items(LAYER, of, config)] == ["cards"]


def test_without_demand_there_is_nothing_to_plan(tmp_path: Path) -> None:
    config = config_of(tmp_path, "cards")
    of = demand([prompt(KEYS, "t", "hi")], [head(KEYS, "t", "s")])
    assert items(LAYER, of, config) == []
    assert LAYER.refused(of, config).num_rows == 0


def test_changed_weights_are_another_item_and_another_input(tmp_path: Path) -> None:
    config = config_of(tmp_path, "cards")
    [before], inputs = planned(config, "cards"), LAYER.inputs(config)
    write_adapter(tmp_path / "cards", b"retrained")
    [after] = planned(config, "cards")
    assert before.item_id != after.item_id
    assert name(before) != name(after)
    assert inputs != LAYER.inputs(config) == {"adapters/cards": after.key_digest}


def test_an_adapter_waits_for_its_model(tmp_path: Path) -> None:
    [item] = planned(config_of(tmp_path, "cards"), "cards")
    model = PlanItem(**{**vars(item), "layer": "weights", "adapter": None})
    assert LAYER.blocked(item, [model]) == "its model is not ready there"
    assert LAYER.blocked(item, [PlanItem(**{**vars(model), "model": "other"})]) is None
    assert LAYER.blocked(item, []) is None


# -- warming and proof ---------------------------------------------------------------------------


def warmed(run: Run, config: Config, plan: Sequence[PlanItem]) -> list[Outcome]:
    outcomes: list[Outcome] = run(lambda h: LAYER.warm(plan, h, ctx(config, plan)))
    return outcomes


def proven(run: Run, config: Config, plan: Sequence[PlanItem]) -> list[Proof]:
    proofs: list[Proof] = run(lambda h: LAYER.prove(plan, h, ctx(config, plan)))
    return proofs


def test_a_loaded_adapter_has_answered_and_is_proven(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "cards", "loans")
    plan = planned(config, "cards", "loans")
    outcomes = warmed(run, config, plan)
    assert [(o.status, o.bytes) for o in outcomes] == [("warmed", i.bytes) for i in plan]
    assert tiny.adapters.roots == {name(i): str(tmp_path / (i.adapter or "")) for i in plan}
    asked = [body["model"] for body in tiny.prefills if "logprobs" in body]
    assert sorted(asked) == sorted(map(name, plan))
    again = warmed(run, config, plan)
    assert [(o.status, o.bytes) for o in again] == [("already", 0)] * 2
    assert len([call for call in tiny.adapters.calls if call[0] == "load"]) == 2
    for proof, item in zip(proven(run, config, plan), plan, strict=True):
        value = -3.5 - 3 * tiny.adapters.shifts[name(item)]
        assert proof == Proof(item.item_id, True, f"listed; logprob {value:.2f} vs base -3.50")


def test_listed_already_counts_only_if_it_answers(tmp_path: Path, tiny: TinyHost, run: Run) -> None:
    config = config_of(tmp_path, "cards")
    plan = planned(config, "cards")
    warmed(run, config, plan)
    tiny.status["/v1/completions"] = 500
    [outcome] = warmed(run, config, plan)
    assert (outcome.status, outcome.error) == ("failed", "HTTP 500: error inside the host")
    [proof] = proven(run, config, plan)
    assert (proof.resident, proof.evidence) == (
        False,
        "listed, but HTTP 500: error inside the host",
    )


def test_weights_that_changed_after_the_plan_are_not_loaded(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "cards")
    plan = planned(config, "cards")
    write_adapter(tmp_path / "cards", b"retrained")
    [outcome] = warmed(run, config, plan)
    assert outcome.status == "failed"
    assert outcome.error == "its weights changed since the plan was made: make a new plan"
    assert tiny.adapters.calls == []
    nameless = settings({})
    assert [o.error for o in warmed(run, nameless, plan)] == [
        "its folder is not known here: name it in layers.adapters.folders"
    ]


def test_weights_that_changed_after_loading_are_caught(tmp_path: Path, run: Run) -> None:
    config = config_of(tmp_path, "cards")
    plan = planned(config, "cards")
    warmed(run, config, plan)
    write_adapter(tmp_path / "cards", b"retrained")
    assert [(p.resident, p.evidence) for p in proven(run, config, plan)] == [
        (False, "weights at its path have changed")
    ]


def test_what_is_not_loaded_as_planned_is_not_resident(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "cards")
    write_adapter(tmp_path / "inert", b"inert")
    config = settings({**config.layers.adapters.folders, "inert": str(tmp_path / "inert")})
    cards, inert = plan = planned(config, "cards", "inert")
    assert [p.evidence for p in proven(run, config, plan)] == ["not listed"] * 2
    warmed(run, config, [inert])
    tiny.adapters.roots[name(cards)] = "/elsewhere"
    assert [(p.resident, p.evidence) for p in proven(run, config, plan)] == [
        (False, "listed from another folder than the settings name"),
        (False, "answers as the base model does"),
    ]
    [outcome] = warmed(run, config, [cards])
    assert outcome.error == "HTTP 400: its name is loaded from another folder"


def test_more_listed_than_slots_proves_nothing(tmp_path: Path, tiny: TinyHost, run: Run) -> None:
    config = config_of(tmp_path, "cards", "loans")
    plan = planned(config, "cards", "loans")
    warmed(run, config, plan)
    tiny.adapters.slots = 1
    assert {(p.resident, p.evidence) for p in proven(run, config, plan)} == {
        (False, "2 adapters share 1 slots: some are pushed out")
    }


def test_a_base_that_contradicts_itself_proves_nothing(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "cards")
    plan = planned(config, "cards")
    warmed(run, config, plan)
    tiny.adapters.noise = cycle([0.0, 5.0])
    assert [p.resident for p in proven(run, config, plan)] == [False]


def test_a_host_that_loads_none_at_run_time_is_left_out(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "cards")
    tiny.adapters.at_run_time = False
    [outcome] = warmed(run, config, planned(config, "cards"))
    assert (outcome.status, outcome.error) == ("skipped", "the host loads no adapters at run time")
    tiny.status["/v1/models"] = 503
    with pytest.raises(HostUnavailable):
        warmed(run, config, planned(config, "cards"))


# -- room ----------------------------------------------------------------------------------------


def arranged(run: Run, plan: Sequence[PlanItem], of: Context) -> Arranged:
    result: Arranged = run(lambda h: LAYER.arrange(plan, h, of))
    return result


def test_all_fit_into_free_slots(tmp_path: Path, tiny: TinyHost, run: Run) -> None:
    config = config_of(tmp_path, "a", "b")
    plan = planned(config, "a", "b")
    assert arranged(run, plan, ctx(config, plan)) == Arranged(plan, [], [])
    warmed(run, config, plan)
    tiny.adapters.slots = 2
    assert arranged(run, plan, ctx(config, plan)) == Arranged(plan, [], [])
    tiny.adapters.slots = None
    assert arranged(run, plan, ctx(config, plan)) == Arranged(plan, [], [])


def test_items_beyond_the_slots_are_skipped_with_the_numbers(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "a", "b", "c")
    plan = planned(config, "a", "b", "c")
    warmed(run, config, plan[2:])
    tiny.adapters.roots["theirs"] = "/theirs"
    tiny.adapters.slots = 3
    got = arranged(run, plan, ctx(config, plan))
    assert [i.adapter for i in got.items] == ["a", "b"]
    assert [(o.item_id, o.status, o.error) for o in got.skipped] == [
        (
            plan[2].item_id,
            "skipped",
            "all 3 adapter slots of the host are taken, 1 of them by theirs",
        )
    ]
    # It was loaded before and would push out one of those that fit.
    assert set(tiny.adapters.roots) == {"theirs"}


def test_what_the_plan_replaces_or_drops_is_unloaded(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "a", "dropped")
    [dropped] = planned(config, "dropped")
    warmed(run, config, [*planned(config, "a"), dropped])
    write_adapter(tmp_path / "a", b"retrained")
    plan = planned(config, "a")
    foreign = {"theirs-0123456789ab": "/theirs", "a": "/a", "a-v2": "/a"}
    tiny.adapters.roots |= foreign
    partial = arranged(run, plan, ctx(config, plan, complete=False))
    assert partial.notes == []
    assert set(tiny.adapters.roots) == {name(dropped), *foreign}
    arranged(run, plan, ctx(config, plan))
    assert set(tiny.adapters.roots) == set(foreign)


def test_one_of_ours_from_a_moved_folder_is_loaded_anew(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "a")
    plan = planned(config, "a")
    tiny.adapters.roots[name(plan[0])] = "/before"
    assert arranged(run, plan, ctx(config, plan)) == Arranged(plan, [], [])
    assert [o.status for o in warmed(run, config, plan)] == ["warmed"]


def test_what_live_requests_use_stays_and_keeps_its_slot(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "a")
    before = planned(config, "a")
    warmed(run, config, before)
    write_adapter(tmp_path / "a", b"retrained")
    plan = planned(config, "a")
    old = name(before[0])
    tiny.adapters.used = {f"{old},other": time.time()}
    tiny.adapters.slots = 1
    got = arranged(run, plan, ctx(config, plan))
    assert got.notes == [f"target 'gpu': adapter {old} stays loaded: requests use it"]
    assert [o.error for o in got.skipped] == [
        f"all 1 adapter slots of the host are taken, 1 of them by {old}"
    ]
    assert set(tiny.adapters.roots) == {old}
    tiny.adapters.used = {old: time.time() - 60}
    assert arranged(run, plan, ctx(config, plan)) == Arranged(plan, [], [])
    assert tiny.adapters.roots == {}


def test_what_the_host_will_not_unload_is_told(tmp_path: Path, tiny: TinyHost, run: Run) -> None:
    config = config_of(tmp_path, "a", "dropped")
    warmed(run, config, planned(config, "dropped"))
    tiny.status["/v1/unload_lora_adapter"] = 500
    plan = planned(config, "a")
    [note] = arranged(run, plan, ctx(config, plan)).notes
    assert note.endswith("stays loaded: HTTP 500: error inside the host")


def test_a_request_finds_its_adapter_under_its_present_name(
    tmp_path: Path, tiny: TinyHost, run: Run
) -> None:
    config = config_of(tmp_path, "a", "b")
    plan = planned(config, "a", "b")
    warmed(run, config, plan[:1])
    asked = [lookup(KEYS, "t", "x", str(n), adapter=a) for n, a in enumerate(["a", "b", None])]
    found = run(lambda h: LAYER.find(asked, h, ctx(config, plan)))
    assert [(m.hit, m.asked) for m in found] == [(True, True), (False, True), (False, False)]
    assert tiny.models == [MODEL]
