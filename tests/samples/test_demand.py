from __future__ import annotations

from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

from samples import parameters, texts
from samples.demand import Demand, Incident, Opening, incidents
from samples.pool import Prompt
from samples.shipped import Shipped

HOUR_MS = 3_600_000


def openings(
    name: str, bursts: tuple[Incident, ...] = (), seed: int = 1, per_day: float = 20_000.0
) -> tuple[list[Prompt], list[Opening]]:
    tenant = texts.tenant(name)
    pool = Shipped().pool(tenant, 400, np.random.default_rng(2))
    demand = Demand(tenant, pool, 14, np.random.default_rng(seed))
    return pool, demand.openings(per_day, bursts)


def weekday(at_ms: int) -> int:
    return (parameters.FIRST_DAY + timedelta(milliseconds=at_ms)).weekday()


def test_hours_follow_the_tenants_shape_on_its_own_clock() -> None:
    shape = parameters.SHAPES["lanting-shop"]
    _, found = openings("lanting-shop")
    by_hour = Counter(o.at_ms // HOUR_MS % 24 for o in found)
    got = np.array([by_hour[h] for h in range(24)]) / len(found) * 24
    wanted = np.roll(shape.hours, shape.turn)
    assert np.corrcoef(got, wanted)[0, 1] > 0.97


def test_weekends_are_quieter() -> None:
    volume = np.zeros(14)
    for seed in range(6):
        _, found = openings("codeforge", seed=seed)
        volume += np.bincount([o.at_ms // (24 * HOUR_MS) for o in found], minlength=14)
    weekend = volume[[3, 4, 10, 11]].mean() / volume[[0, 1, 5, 6, 7, 8, 12, 13]].mean()
    assert weekend == pytest.approx(0.79 / 1.11, abs=0.12)


def test_intents_have_their_seasons() -> None:
    by_weekday: Counter[int] = Counter()
    for seed in range(6):
        # several seeds, because only two of a log's days are Mondays
        pool, found = openings("acme-bank", seed=seed)
        by_weekday.update(
            weekday(o.at_ms) for o in found if pool[o.prompt].intent == "weekly_report"
        )
    assert by_weekday[0] > 0.6 * by_weekday.total()
    night = Counter((o.at_ms // HOUR_MS + 1) % 24 // 6 for o in found)
    lost = Counter(
        (o.at_ms // HOUR_MS + 1) % 24 // 6 for o in found if pool[o.prompt].intent == "card_lost"
    )
    assert lost[0] / lost.total() > 2 * night[0] / night.total()


def test_an_incident_brings_a_burst_of_its_intent() -> None:
    burst = Incident("acme-bank", "card_declined", hour=3 * 24 + 9, hours=4)
    start, end = 3 * 24 + 9, 3 * 24 + 13

    def during(bursts: tuple[Incident, ...]) -> tuple[int, int]:
        pool, found = openings("acme-bank", bursts)
        inside = [o for o in found if start <= o.at_ms // HOUR_MS < end]
        return len(inside), sum(pool[o.prompt].intent == burst.intent for o in inside)

    (calm, _), (loud, declined) = during(()), during((burst,))
    assert loud / calm == pytest.approx(parameters.BURST, abs=0.25)
    assert declined / loud > 0.4


def test_incidents_are_drawn_from_day_two_on_by_the_seed() -> None:
    tenants = Shipped().tenants()
    drawn = [incidents(tenants, 14, np.random.default_rng(seed)) for seed in range(20)]
    assert {len(found) for found in drawn} == {parameters.INCIDENTS}
    for burst in (b for found in drawn for b in found):
        assert 24 <= burst.hour < 14 * 24
        assert texts.tenant(burst.tenant).intents[burst.intent].incident
    assert len({b.tenant for found in drawn for b in found}) == 4


def test_the_head_is_popular_and_buttons_lead_it() -> None:
    pool, found = openings("nordwind-travel")
    counts = Counter(o.prompt for o in found)
    top = counts.most_common(24)
    assert sum(n for _, n in top) / len(found) > 0.3
    assert sum(pool[i].button for i, _ in top) > 10


@pytest.mark.parametrize("name", texts.TENANTS)
def test_the_composed_share_of_sessions_opens_with_a_suggested_question(name: str) -> None:
    pool, found = openings(name)
    pressed = sum(pool[o.prompt].button for o in found) / len(found)
    assert pressed == pytest.approx(parameters.PRESSED, abs=0.03)


def test_suggested_questions_stay_while_typed_ones_drift() -> None:
    pool, found = openings("codeforge", per_day=100_000.0)
    days = [Counter[int](), Counter[int]()]
    for opening in found:
        day = opening.at_ms // (24 * HOUR_MS)
        if day in (0, 7):
            days[day // 7][opening.prompt] += 1

    def agreement(*, button: bool) -> float:
        chosen = [i for i, prompt in enumerate(pool) if prompt.button == button]
        first, later = ([day[i] for i in chosen] for day in days)
        return float(np.corrcoef(first, later)[0, 1])

    assert agreement(button=True) > 0.9
    assert agreement(button=False) < 0.9


@pytest.mark.parametrize("button", [True, False])
def test_a_pool_of_one_kind_is_asked_all_the_same(button: bool) -> None:
    tenant = texts.tenant("codeforge")
    pool = [p for p in Shipped().pool(tenant, 200, np.random.default_rng(2)) if p.button == button]
    found = Demand(tenant, pool, 14, np.random.default_rng(1)).openings(1_000.0, ())
    assert len({o.prompt for o in found}) > 10


def test_prompts_are_born_and_fade_away() -> None:
    tenant = texts.tenant("codeforge")
    pool = Shipped().pool(tenant, 2_000, np.random.default_rng(2))
    found = Demand(tenant, pool, 14, np.random.default_rng(3)).openings(200_000, ())
    asked: dict[int, set[int]] = {}
    for opening in found:
        asked.setdefault(opening.prompt, set()).add(opening.at_ms // (24 * HOUR_MS))
    late = sum(min(days) >= 4 for days in asked.values()) / len(pool)
    early = sum(max(days) < 10 for days in asked.values()) / len(pool)
    # ten days of births (deaths) at the daily rate, and a few that merely were not asked
    assert 10 * parameters.NEW_A_DAY * 0.6 < late < 10 * parameters.NEW_A_DAY * 2
    assert 10 * parameters.NEW_A_DAY * 0.6 < early < 10 * parameters.NEW_A_DAY * 2
