"""Of the hottest intents a few first turns are examples, each of another kind."""

from __future__ import annotations

from typing import Any

from tests.plan import building
from tests.plan.sources.material import heads_of, material, prompts_of
from warmup_lib.config import Config
from warmup_lib.plan.sources.intents import Intents


def settings(**more: Any) -> Config:
    return Config.model_validate({"plan": {"sources": {"intents": more}}})


def prompt(text: str, requests: int, intent: str | None, **more: Any) -> dict[str, Any]:
    return building.prompt(text, requests, text=text, intent=intent, **more)


def proposed(
    config: Config, *rows: dict[str, Any], degrees: dict[str, float] | None = None
) -> list[str]:
    made = material(rows, degrees=degrees)
    proposal = Intents().propose(made, config)
    assert heads_of(proposal, made) == []
    return prompts_of(proposal, made)


def test_the_hottest_intents_of_all_tenants_get_examples() -> None:
    rows = [
        prompt("a1", 4, "pay"),
        prompt("a2", 4, "pay"),
        prompt("b1", 5, "pay", tenant="beta"),  # another tenant's intent of the same name
        prompt("c1", 2, "close"),
        prompt("d1", 99, None),
    ]
    assert proposed(settings(limit=1, examples=9), *rows) == ["a1", "a2"]
    assert proposed(settings(limit=2, examples=1), *rows) == ["a1", "b1"]
    assert proposed(settings(limit=9, examples=9), *rows) == ["a1", "a2", "b1", "c1"]


def test_an_example_is_a_first_turn_that_may_be_warmed() -> None:
    rows = [
        prompt("redacted", 9, "pay", unwarmable="redacted"),
        prompt("later turn", 8, "pay", history=True),
        prompt("warm", 5, "pay"),
        prompt("cool", 1, "pay"),
        prompt("listed", 0, "pay"),  # nobody asked it
    ]
    assert proposed(settings(examples=1), *rows) == ["warm"]
    assert proposed(settings(examples=9), *rows) == ["warm", "cool"]


def test_an_example_stands_for_its_phrasings() -> None:
    """At 20 degrees two texts are one (cosine 0.94): b serves a and c, d is another question."""
    rows = [prompt(text, n, "pay") for text, n in (("a", 6), ("b", 1), ("c", 5), ("d", 8))]
    degrees = {"t-a": 0.0, "t-b": 20.0, "t-c": 40.0, "t-d": 120.0}
    assert proposed(settings(examples=1), *rows, degrees=degrees) == ["b"]
    assert proposed(settings(examples=3), *rows, degrees=degrees) == ["b", "d"]
    other = [{**row, "context_digest": row["text"]} for row in rows]  # none may serve another
    assert proposed(settings(examples=2), *other, degrees=degrees) == ["a", "d"]


def test_ties_go_to_the_digest_and_an_intent_nobody_needs_gets_none() -> None:
    rows = [prompt(text, 3, "pay") for text in ("c", "a", "b")]
    assert proposed(settings(examples=2), *rows) == ["a", "b"]
    assert proposed(settings()) == []


def test_never_more_than_the_limits() -> None:
    rows = [prompt(f"{i}-{n}", 60 - i, f"intent-{i}") for i in range(60) for n in range(5)]
    found = proposed(Config(), *rows)
    assert len(found) == 50 * 3
    assert {text.split("-")[0] for text in found} == {str(i) for i in range(50)}
