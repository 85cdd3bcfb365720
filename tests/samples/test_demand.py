from __future__ import annotations

from collections import Counter

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
    weekend = volume[[5, 6, 12, 13]].mean() / volume[[0, 1, 2, 3, 7, 8, 9, 10]].mean()
    assert weekend == pytest.approx(0.79 / 1.11, abs=0.12)


def test_intents_have_their_seasons() -> None:
    pool, found = openings("acme-bank")
    by_weekday = Counter(
        o.at_ms // (24 * HOUR_MS) % 7 for o in found if pool[o.prompt].intent == "weekly_report"
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
