from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from samples import parameters, texts
from samples.demand import Opening
from samples.sessions import DAY_MS, Turn, revision, turns
from samples.shipped import Shipped


def talk(name: str, count: int = 4_000) -> list[Turn]:
    tenant = texts.tenant(name)
    pool = Shipped().pool(tenant, 300, np.random.default_rng(2))
    openings = [Opening(i * 300_000, i % len(pool)) for i in range(count)]
    return list(turns(tenant, pool, openings, 500.0, np.random.default_rng(4)))


def test_follow_up_turns_carry_what_was_said() -> None:
    found = talk("hearth-home")
    sessions = defaultdict(list)
    for turn in found:
        sessions[turn.session].append(turn)
    assert len(sessions) == 4_000
    longer = [s for s in sessions.values() if len(s) > 1]
    assert len(longer) / len(sessions) == pytest.approx(parameters.FOLLOW_UP, abs=0.02)
    for session in longer:
        for before, after in pairwise(session):
            assert after.history == (*before.history, (before.text, before.answer))
            assert after.at_ms > before.at_ms
            assert after.personal == before.personal
            assert (after.user, after.segment, after.arm) == (
                before.user,
                before.segment,
                before.arm,
            )


def test_arms_run_on_their_days_and_stay_with_the_user() -> None:
    arms = defaultdict(set)
    for turn in talk("acme-bank"):
        assert (turn.arm is not None) == (4 <= turn.at_ms // DAY_MS + 1 <= 11) or turn.history
        if turn.arm:
            arms[turn.user].add(turn.arm)
    assert {len(found) for found in arms.values()} == {1}
    assert {arm for found in arms.values() for arm in found} == {"control", "warm", "concise"}


def test_a_segment_asks_its_own_intents_more() -> None:
    found = [turn for turn in talk("acme-bank") if not turn.history]
    own = [t.segment == "premium_vip" for t in found if t.prompt.intent == "mortgage_advice"]
    other = [t.segment == "premium_vip" for t in found if t.prompt.intent == "card_lost"]
    assert np.mean(own) > 2 * np.mean(other)


def test_users_keep_locale_and_segment() -> None:
    seen = defaultdict(set)
    for turn in talk("nordwind-travel"):
        seen[turn.user].add((turn.prompt.locale, turn.segment))
    assert {len(found) for found in seen.values()} == {1}
    assert len(seen) > 100


def test_revision_follows_the_release() -> None:
    shop, bank = texts.tenant("lanting-shop"), texts.tenant("acme-bank")
    assert [revision(shop, day) for day in (8, 9)] == ["r1", "r2"]
    assert [revision(bank, day) for day in (8, 9)] == ["r1", "r1"]


def test_a_new_model_words_its_answers_differently() -> None:
    answers = defaultdict(set)
    for turn in talk("lanting-shop"):
        if not turn.history:
            answers[turn.prompt.text, revision(turn.tenant, turn.day)].add(turn.answer)
    assert {len(found) for found in answers.values()} == {1}
    both = {text for text, version in answers if version == "r2"}
    assert both
    assert all(answers[text, "r1"] != answers[text, "r2"] for text in both)
