from __future__ import annotations

import re

import numpy as np
import pytest

from samples import parameters, texts
from samples.shipped import Shipped
from samples.writing import tokens

LONG = {
    "acme-bank": (1_600, 2_000),
    "nordwind-travel": (1_900, 2_600),
    "lanting-shop": (1_200, 1_500),
}
SHORT = {"codeforge": (170, 260), "hearth-home": (170, 260)}


@pytest.mark.parametrize("name", texts.TENANTS)
def test_heads_have_the_lengths_of_their_kind(name: str) -> None:
    tenant = texts.tenant(name)
    low, high = (LONG | SHORT)[name]
    for area in tenant.areas:
        for locale in tenant.locales:
            head = tenant.head(area, locale, None, 1, "2026-03-02T00:00:00.000Z")
            assert low < tokens(head, "en") < high


@pytest.mark.parametrize("name", texts.TENANTS)
def test_every_intent_is_described_and_has_a_known_season(name: str) -> None:
    tenant = texts.tenant(name)
    for locale in tenant.locales:
        assert set(texts.table(f"{name}.{locale}")["intents"]) <= set(tenant.intents)
    for intent in tenant.intents.values():
        assert intent.area in tenant.areas
        assert intent.season in parameters.SEASONS
        assert intent.segment in (None, *tenant.segments)
    assert set(tenant.adapters) <= set(tenant.areas)
    assert sum(tenant.segments.values()) == pytest.approx(1)
    assert sum(tenant.locales.values()) == pytest.approx(1)


def test_there_are_about_forty_intents_in_six_languages() -> None:
    tenants = [texts.tenant(name) for name in texts.TENANTS]
    assert sum(len(tenant.intents) for tenant in tenants) == 44
    assert {locale for t in tenants for locale in t.locales} == {"en", "de", "fr", "es", "zh", "ja"}


@pytest.mark.parametrize("name", texts.TENANTS)
def test_the_grammar_gives_thousands_of_distinct_prompts_without_leftovers(name: str) -> None:
    tenant = texts.tenant(name)
    pool = Shipped().pool(tenant, 2_000, np.random.default_rng(5))
    assert len({prompt.text for prompt in pool}) == len(pool) == 2_000
    blocks = sum(len(texts.table(f"{name}.{locale}")["intents"]) for locale in tenant.locales)
    assert sum(prompt.button for prompt in pool) == blocks
    assert all(prompt.button for prompt in pool[:blocks])
    for prompt in pool:
        outside_code = re.sub(r"```.*?```", "", prompt.text, flags=re.S)
        turns = [t for pair in prompt.follow for t in pair]
        for text in [outside_code, prompt.answer, *turns]:
            assert not re.search(r"[{}|\[\]]|<<|>>", text), text
        assert "<<" not in prompt.text
        assert prompt.text == prompt.text.strip()


def test_one_release_changes_the_policy_and_nothing_else() -> None:
    tenant = texts.tenant("nordwind-travel")
    before, after = (tenant.head("stays", "en", None, day, "") for day in (6, 7))
    release = tenant.release
    assert release is not None
    assert release["day"] == 7
    assert before != after
    assert before.replace(release["old"], release["new"]) == after


def test_the_winner_of_the_experiment_stays() -> None:
    tenant = texts.tenant("acme-bank")
    concise = tenant.head("cards", "en", "concise", 11, "")
    assert tenant.head("cards", "en", None, 12, "") == concise
    assert tenant.head("cards", "en", None, 3, "") == tenant.head("cards", "en", "control", 4, "")
    assert tenant.head("cards", "en", "warm", 4, "") != concise


def test_what_varies_comes_last_except_the_kiosk_clock() -> None:
    tenant = texts.tenant("hearth-home")
    clock = "2026-03-05T10:32:11.000Z"
    assert tenant.head("kiosk", "fr", None, 4, clock).startswith(f"Current time: {clock}\n")
    assert tenant.head("app", "fr", None, 4, clock).startswith(tenant.base.strip())


def test_every_language_has_its_words() -> None:
    common = texts.table("common")
    for name in ("regions", "greetings", "closings"):
        assert set(common[name]) == set(common["languages"])
