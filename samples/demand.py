"""When which prompt is asked: arrivals by tenant and hour, popularity by day, season and incident.

The result is a list of openings, the first requests of sessions; follow-up turns come later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from samples import parameters as p
from samples.popularity import Walk, zipf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from samples.pool import Prompt
    from samples.texts import Tenant

    Array = NDArray[np.float64]

HOUR_S = 3_600
FADE_HOURS = 18
FADE = 6.0
INCIDENT_PROMPTS = 12
"""An incident's echo in hours, its e-folding time, and how many prompts it makes popular."""

TURNS_A_SESSION = 1 + p.FOLLOW_UP + p.FOLLOW_UP**2


@dataclass(frozen=True)
class Opening:
    """The first request of a session: milliseconds since the log's start, and the pool index."""

    at_ms: int
    prompt: int


@dataclass(frozen=True)
class Incident:
    """A burst of one intent: first hour since the log's start, length, affected tenant."""

    tenant: str
    intent: str
    hour: int
    hours: int


def incidents(
    tenants: Sequence[Tenant], days: int, rng: np.random.Generator
) -> tuple[Incident, ...]:
    """Draw the incidents of a log: by day, working hour, tenant and intent, from day 2 on."""
    options = [(t.name, n) for t in tenants for n, i in t.intents.items() if i.incident]
    out = []
    for _ in range(round(p.INCIDENTS * days / p.DAYS)):
        tenant, intent = options[int(rng.random() * len(options))]
        day = 1 + int(rng.random() * (days - 1))
        hour = day * 24 + 6 + int(rng.random() * 12)
        out.append(Incident(tenant, intent, hour, 3 + int(rng.random() * 3)))
    return tuple(out)


class Demand:
    """One tenant's demand over the whole log."""

    def __init__(
        self, tenant: Tenant, pool: Sequence[Prompt], days: int, rng: np.random.Generator
    ) -> None:
        self._rng = rng
        self._days = days
        self._shape = p.SHAPES[tenant.name]
        self._names = list(tenant.intents)
        self._intent = np.array([self._names.index(prompt.intent) for prompt in pool])
        self._seasons = [p.SEASONS[i.season] for i in tenant.intents.values()]
        self._buttons = sum(prompt.button for prompt in pool)
        typed = len(pool) - self._buttons
        base = np.sort(rng.standard_normal(typed))[::-1]
        # each day the same small part of all prompts comes and goes; the others outlast the log
        born, gone = np.floor(rng.random((2, typed)) / p.NEW_A_DAY)
        self._walk = Walk(base, p.DRIFT_KEPT, float(np.exp(-1 / p.DRIFT_DAYS)), rng)
        self._born = np.where(born < days, born, 0)
        self._gone = gone + 1
        self._weights = zipf(p.ZIPF_EXPONENT, typed)
        self._noise = np.exp(p.DAY_NOISE * rng.standard_normal(days) - p.DAY_NOISE**2 / 2)

    def openings(self, per_day: float, bursts: Sequence[Incident]) -> list[Opening]:
        """Return the openings in the order of time.

        Args:
            per_day: expected requests of all tenants a day, follow-up turns included.
            bursts: this tenant's incidents.
        """
        rate = per_day * self._shape.share / TURNS_A_SESSION / 24
        affected = [self._affected(burst) for burst in bursts]
        out: list[Opening] = []
        for day in range(self._days):
            popularity = self._popularity(day)
            for hour in range(day * 24, day * 24 + 24):
                local, weekday = self._clock(hour)
                expected = rate * self._noise[day] * p.WEEKDAYS[weekday] * self._shape.hours[local]
                out += self._hour(hour, expected, popularity * self._season(local, weekday))
                for burst, items in zip(bursts, affected, strict=True):
                    extra = expected * _burst(burst, hour)
                    out += self._hour(hour, extra, items)
            self._walk.step()
        return sorted(out, key=lambda o: (o.at_ms, o.prompt))

    def _popularity(self, day: int) -> Array:
        """Return the day's weights in the pool's order, which has the suggested questions first."""
        alive = (self._born <= day) & (day < self._gone)
        order = np.argsort(-np.where(alive, self._walk.score, -np.inf), kind="stable")
        typed = np.empty(len(order))
        typed[order] = self._weights
        pressed = zipf(p.INTENT_EXPONENT, self._buttons)
        return np.concatenate([p.PRESSED * pressed, (1 - p.PRESSED) * typed * alive])

    def _season(self, local: int, weekday: int) -> Array:
        by_intent = np.array([hours[local] * week[weekday] for hours, week in self._seasons])
        season: Array = by_intent[self._intent]
        return season

    def _clock(self, hour: int) -> tuple[int, int]:
        """Return hour and weekday on the tenant's clock."""
        local = hour - self._shape.turn
        day = p.FIRST_DAY + timedelta(days=local // 24)
        return local % 24, day.weekday()

    def _affected(self, burst: Incident) -> Array:
        """Return weights that are zero but for a few of the incident's prompts."""
        chosen = np.flatnonzero(self._intent == self._names.index(burst.intent))
        chosen = self._rng.permutation(chosen)[:INCIDENT_PROMPTS]
        weights = np.zeros(len(self._intent))
        weights[chosen] = zipf(p.ZIPF_EXPONENT, len(chosen))
        return weights

    def _hour(self, hour: int, expected: float, weights: Array) -> list[Opening]:
        spread = 1 / p.WINDOW_NOISE**2
        windows = expected / 6 * self._rng.gamma(spread, 1 / spread, 6)
        counts = self._rng.poisson(windows)
        total = int(counts.sum())
        if not total:
            return []
        cumulative = np.cumsum(weights)
        drawn = np.searchsorted(cumulative, self._rng.random(total) * cumulative[-1], side="right")
        window = np.repeat(np.arange(6), counts)
        at = (hour + (window + self._rng.random(total)) / 6) * HOUR_S * 1000
        return [Opening(int(a), int(d)) for a, d in zip(at, drawn, strict=True)]


def _burst(burst: Incident, hour: int) -> float:
    """Return the extra volume of that hour relative to the expected one."""
    since = hour - burst.hour
    if since < 0 or since >= burst.hours + FADE_HOURS:
        return 0.0
    if since < burst.hours:
        return p.BURST - 1
    return (p.BURST - 1) * 0.3 * float(np.exp(-(since - burst.hours + 1) / FADE))
