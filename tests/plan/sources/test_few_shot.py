"""Samples of the intents that are asked for the most come first, so many of each classifier."""

from __future__ import annotations

from typing import Any

from tests.plan import building
from tests.plan.sources.material import material, prompts_of
from warmup_lib.config import Config
from warmup_lib.plan.sources.few_shot import FewShot


def sample(classifier: str, intent: str, number: int, tenant: str = "acme") -> dict[str, Any]:
    text = f"{classifier} {intent} {number} {tenant}"
    named = {"source": "few_shot", "part": classifier, "tenant": tenant}
    return {**named, "intent": intent, "text": text}


LISTED = [
    sample("old", "pay", 1),
    sample("c", "close", 1),
    sample("c", "pay", 1),
    sample("c", "unasked", 1),
    sample("c", "pay", 2),
    sample("c", "pay", 1, "beta"),  # nobody of beta asks it
    sample("d", "close", 1),
]
ASKED = [
    building.prompt("p", 3, text="p", intent="pay"),
    building.prompt("q", 2, text="q", intent="close"),
    building.prompt("r", 2, text="r", intent="pay"),
    building.prompt("s", 9, text="s", intent=None),
]


def proposed(**settings: Any) -> list[str]:
    samples = [
        {**building.prompt(row["text"]), "text": row["text"], "requests": 0} for row in LISTED
    ]
    made = material([*ASKED, *samples], listed=LISTED)
    config = Config.model_validate({"plan": {"sources": {"few_shot": settings}}})
    return prompts_of(FewShot().propose(made, config), made)


def test_the_hottest_intents_first() -> None:
    both = {"c": "x", "d": "y"}
    assert proposed(classifiers=both, limit=1) == ["c pay 1 acme", "d close 1 acme"]
    assert proposed(classifiers={"c": "x"}, limit=3) == [
        "c close 1 acme",
        "c pay 1 acme",
        "c pay 2 acme",
    ]


def test_all_of_a_short_list_and_none_of_a_classifier_that_is_gone() -> None:
    assert len(proposed(classifiers={"c": "x"})) == 5
    assert proposed() == []
