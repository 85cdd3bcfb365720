"""The frozen parameters of the sample log, each with what it was measured on.

Figures marked *measured* come from `python -m samples.measure`; those marked *composed* are our own
choice, because none of the real sets shows them. Later work is measured on this log, so nothing
here changes once it has been used: another log is another seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

SEED = 20260302
"""Seed of the log that is used by default."""

FIRST_DAY = date(2026, 3, 4)
"""Day 1, a Wednesday. Days 1 to 13 are history; day 14, the later traffic, is a working day."""

DAYS = 14
REQUESTS_PER_DAY = 5_000
"""Expected requests a day at scale 1, follow-up turns included, before retries and probes."""

MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True)
class Shape:
    """When a tenant's requests come.

    Attributes:
        share: part of all requests.
        hours: relative rate by hour of the client's own clock, mean 1.
        turn: hours from the client's clock to UTC (composed: the trace names no zone).
    """

    share: float
    hours: tuple[float, ...]
    turn: int


# Measured on ServeGen (alibaba/ServeGen, `m-large`): share by median daily volume and mean hour
# profile of one client each, named behind the tenant. They are the largest clients whose profile
# repeats from day to day, and one (34) that is flat like a machine's.
SHAPES = {
    "acme-bank": Shape(  # client 142: office hours with a lunch dip
        0.381,
        (
            *(0.36, 0.22, 0.19, 0.16, 0.15, 0.16, 0.24, 0.40, 0.83, 1.49, 2.20, 1.91),
            *(1.09, 1.38, 1.94, 1.96, 2.03, 1.70, 1.28, 1.10, 1.02, 0.92, 0.72, 0.55),
        ),
        -1,
    ),
    "codeforge": Shape(  # client 34: the same all day
        0.318,
        (
            *(1.02, 1.00, 1.04, 1.02, 1.03, 1.06, 1.07, 1.07, 1.05, 1.03, 0.97, 1.02),
            *(1.09, 0.97, 0.91, 0.93, 0.85, 0.89, 0.95, 0.99, 1.00, 1.00, 1.02, 1.03),
        ),
        0,
    ),
    "lanting-shop": Shape(  # client 21: late morning to midnight
        0.174,
        (
            *(1.06, 0.77, 0.56, 0.42, 0.40, 0.43, 0.52, 0.55, 0.74, 0.90, 1.32, 1.46),
            *(1.21, 1.12, 1.08, 1.15, 1.21, 1.43, 1.43, 1.30, 1.26, 1.29, 1.20, 1.19),
        ),
        -8,
    ),
    "nordwind-travel": Shape(  # client 100: a long broad day
        0.078,
        (
            *(0.57, 0.42, 0.76, 0.62, 0.49, 0.49, 0.59, 0.68, 0.98, 1.17, 1.33, 1.25),
            *(1.24, 1.32, 1.18, 1.28, 1.26, 1.20, 1.34, 1.25, 1.31, 1.23, 1.15, 0.90),
        ),
        -1,
    ),
    "hearth-home": Shape(  # client 56: morning, afternoon and evening humps
        0.049,
        (
            *(0.58, 0.32, 0.20, 0.14, 0.12, 0.13, 0.19, 0.29, 0.69, 1.35, 1.65, 1.61),
            *(0.96, 1.21, 1.69, 1.82, 1.80, 1.42, 1.09, 1.25, 1.44, 1.55, 1.42, 1.05),
        ),
        -1,
    ),
}

WEEKDAYS = (1.11, 1.14, 1.10, 1.09, 0.99, 0.80, 0.78)
"""Volume by weekday, Monday first. Measured on ServeGen: the median of the 44 clients active on all
14 days, the trace's two-day trough read as the weekend."""

DAY_NOISE = 0.22
"""Log standard deviation of a tenant's daily volume around its weekday. Measured on ServeGen: the
median of the five clients."""

WINDOW_NOISE = 0.19
"""Coefficient of variation of 10-minute windows within the hour. Measured as above."""

BURST = 1.94
"""Volume of an incident hour against the expected one. Measured on ServeGen: the 99.5th percentile
of hourly volume over expected, median of the five clients."""

INCIDENTS = 3
"""Incidents in 14 days, drawn by the seed (composed; about 0.5 % of the tenant-hours above)."""

ZIPF_EXPONENT = 0.80
POOL = 6_000
"""Skew of prompt popularity and prompts a tenant. Measured on the Berlin search terms
(berlinonline/berlin_dataportal_searchterms, visits): months simulated under drift against the
observed pair probability, distinct terms and top-10, top-100 and once-only shares fit best on a
ridge from (0.70, 3,000) to (0.85, 25,000). The exponent is the one at which what is written, the
ways of writing below included, shows the figures of a Berlin month."""

DRIFT_DAYS = 7.0
DRIFT_KEPT = 0.84
"""e-folding time of the popularity drift in days, and the share of score variance that stays.
Measured on the Berlin terms: two visits one month apart meet 0.79 times as often as two of one
month, twelve months apart 0.50; best fitted by a part that forgets within 5 to 7 days."""

NEW_A_DAY = 0.0047
"""Chance a day that a prompt is born (and, the same, that one is gone). Measured on the Berlin
terms: 13.4 of the monthly top 100 were never seen before, after a year of history."""

INTENT_EXPONENT = 0.25
"""Skew of the intents within a tenant. Measured on BANKING77 (PolyAI, 77 intents)."""

LOWER_CASE = 0.052
NO_FINAL_MARK = 0.132
DOUBLE_SPACE = 0.045
GREETING = 0.028
"""How often a typed question is written so. Measured on BANKING77."""

PRESSED = 0.4
"""Share of sessions that open with a suggested question, before seasons and incidents (composed: no
public set shows it, and the Berlin terms, from which the skew of the others is, were all typed).
The questions themselves have the skew of the intents, the same every day: they neither drift nor
come and go."""

BUTTON_TYPED = 0.15
"""Share of a suggested question's requests that were typed instead of pressed (composed)."""

FOLLOW_UP = 0.15
"""Chance that a turn is followed by another in the same session (composed)."""

NO_CACHE = 0.018
SKIP_CACHE = 0.012
RETRIES = 0.01
PERSONAL = 0.01
NO_ANSWER_LOGGED = 0.09
RATE_LIMITED = 0.006
FAILED = 0.003
SCORED = 0.6
"""Shares of requests: `no-cache`, `skip_cache`, repeated by the client, with personal-looking data,
answer not logged, status 429, status 500, and A/B answers that were scored (composed)."""

REVISION_DAY = 9
"""Day on which the model revision of the tenants that follow releases changes (composed)."""

PROBE_HOURS = 4
"""Hours between two health checks of a tenant (composed)."""

# Latency of the embedded host with SmolLM2-135M on two cores (DESIGN of the embedded stack: a
# 1,674-token prompt 1.65 s cold and 0.10-0.24 s warm; 60-90 tokens/s when decoding).
FIRST_TOKEN_MS = 80.0
PREFILL_MS = 0.93
DECODE_MS = 13.0
CACHE_BLOCK = 32
PREFIX_LIFE_S = 600.0
"""Base first-token time, per uncached prompt token, per answer token; tokens of a cache block; how
long an unused prefix stays in the host's cache (80 % of reuses come within 10 minutes in the
traces of arXiv 2506.02634)."""

ANSWER_LIFE_S = 3_600.0
"""How long the two gateways that have an exact answer cache keep an answer (composed)."""

# Relative demand by hour of the tenant's clock and by weekday for each kind of intent (composed:
# the shapes are what support teams describe; no public set has intents with time stamps).
_FLAT_WEEK = (1.0,) * 7
_NIGHT = (2.6,) * 6 + (0.8,) * 14 + (1.4, 2.0, 2.4, 2.6)
_MORNING = (0.5,) * 5 + (1.2, 2.2, 2.6, 2.2, 1.6, 1.1) + (0.8,) * 13
_OFFICE = (0.5,) * 8 + (1.4,) * 10 + (0.7,) * 6
_EVENING = (0.7,) * 7 + (0.6,) * 9 + (1.1, 1.6, 2.0, 2.2, 2.2, 1.9, 1.4, 1.0)
_FLAT = (1.0,) * 24
SEASONS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "flat": (_FLAT, _FLAT_WEEK),
    "night": (_NIGHT, _FLAT_WEEK),
    "morning": (_MORNING, _FLAT_WEEK),
    "office": (_OFFICE, (1.1, 1.1, 1.1, 1.1, 1.1, 0.6, 0.5)),
    "evening": (_EVENING, _FLAT_WEEK),
    "weekend": (_FLAT, (0.7, 0.7, 0.7, 0.8, 1.1, 1.9, 1.9)),
    "friday": (_FLAT, (0.7, 0.7, 0.8, 1.3, 2.2, 1.2, 0.7)),
    "monday": (_OFFICE, (2.2, 1.1, 0.8, 0.8, 0.8, 0.6, 0.7)),
    "monday_morning": (
        (0.1,) * 6 + (2.0, 6.0, 8.0, 4.0, 1.0) + (0.2,) * 13,
        (5.0, 0.5, 0.2, 0.2, 0.3, 0.05, 0.05),
    ),
    "sunday": (_EVENING, (0.6, 0.4, 0.4, 0.5, 0.7, 1.4, 3.6)),
}
