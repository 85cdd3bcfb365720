"""What a host counts in sums is taken apart into its live requests and ours."""

from __future__ import annotations

import numpy as np
import pytest

from warmup_lib.apply.meter import Meter
from warmup_lib.apply.pace import Seen
from warmup_lib.targets.metrics import Load

POLL = 0.3


def simulate(*, own: float, way: float, live: float, rate: float, until: float) -> list[Seen]:
    """Send one request after another beside live ones, on a clock of the test's own.

    Args:
        own: Seconds in which the host has our first token.
        way: Seconds that its answer then takes to us.
        live: Seconds to a live first token.
        rate: Live first tokens a second.
        until: End.
    """
    draw = np.random.default_rng(7)
    meter, seen = Meter(), []
    meter.begin(Load(0, 10, 1.0))
    counted: list[tuple[float, float]] = []
    answers, at = [], 0.0
    while at < until:
        answers.append((at, at + own + way))
        counted.append((at + own, own))
        at += own + way + 0.002
    times = np.cumsum(draw.exponential(1 / rate, int(2 * rate * until))) if rate else ()
    counted += [(float(t), live) for t in times]
    events = [(t, 0, 0.0) for t, _ in answers] + [(t, 1, t - b) for b, t in answers]
    looks = np.arange(POLL, until, POLL)
    for look in looks:
        late = look + 0.05  # when the look is evaluated
        for when, kind, took in sorted(e for e in events if e[0] <= late):
            if kind:
                meter.answered(1, took, when)
            else:
                meter.sent(1)
        events = [e for e in events if e[0] > late]
        so_far = [s for t, s in counted if t <= look]
        seen.append(meter.look(Load(0, 10 + len(so_far), 1.0 + sum(so_far)), float(look)))
    return seen


@pytest.mark.parametrize("way", [0.001, 0.02])
@pytest.mark.parametrize("live", [0.08, 0.5])
def test_live_first_tokens_are_counted_and_timed(way: float, live: float) -> None:
    seen = simulate(own=0.1, way=way, live=live, rate=2.0, until=120.0)
    count = sum(one.first_tokens for one in seen)
    assert count == pytest.approx(240, rel=0.15)
    assert sum(one.first_token_s for one in seen) / count == pytest.approx(live, rel=0.1)
    assert all(one.ours for one in seen)


def test_ours_alone_are_no_live_ones() -> None:
    seen = simulate(own=0.05, way=0.015, live=0.0, rate=0.0, until=60.0)
    late = [one for one in seen if one.at > 10]
    assert sum(one.first_tokens for one in late) <= 0.02 * len(late)


def test_requests_that_wait_behind_live_ones_are_ours() -> None:
    meter = Meter()
    meter.begin(Load(0, 0, 0.0))
    for _ in range(3):
        meter.sent(1)
    assert meter.look(Load(2, 0, 0.0), 1.0).waiting == 0
    assert meter.look(Load(5, 0, 0.0), 2.0).waiting == 2


def test_nothing_is_told_of_the_time_beside_longer_answers_nor_after_a_restart() -> None:
    meter = Meter()
    meter.begin(Load(0, 5, 1.0))
    meter.sent(50)
    assert meter.look(Load(0, 6, 1.1), 1.0).first_tokens == 0
    meter.answered(50, 2.0, 1.2)
    assert meter.look(Load(0, 8, 1.5), 2.0).first_tokens == 0
    assert meter.look(Load(0, 9, 1.6), 3.0).first_tokens == 1
    assert meter.look(Load(0, 2, 0.2), 4.0).first_tokens == 0
    after = meter.look(Load(0, 4, 0.6), 5.0)
    assert (after.first_tokens, after.ours) == (2, False)
    assert after.first_token_s == pytest.approx(0.4)


def test_a_look_that_found_nothing_tells_nothing() -> None:
    meter = Meter()
    meter.begin(None)
    meter.sent(1)
    assert meter.look(None, 1.0) == Seen(1.0, ours=True)
