"""The pace falls where live requests suffer, rises slowly where they don't, and ends its pauses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.apply.pace import BREATH, ENOUGH, LEAST, Pace, Seen
from warmup_lib.config import InterferenceConfig

STEP = 0.25


class Clock:
    """Feeds a pace one look every quarter of a second."""

    def __init__(self, *, most: int = 4, blind: bool = False, **limits: Any) -> None:
        self.at = 100.0
        self.pace = Pace(InterferenceConfig(**limits), most, blind=blind, at=self.at)

    def look(self, times: int = 1, *, ours: bool = True, live: int = 0, each: float = 0.1,
             waiting: int = 0, own: float | None = None) -> None:  # fmt: skip
        for _ in range(times):
            self.at += STEP
            if own is not None:
                self.pace.answered(own, self.at)
            self.pace.look(Seen(self.at, ours, waiting, live, live * each))

    def heard(self, each: float = 0.1) -> None:
        """Listen to enough live requests, which ends the first pause."""
        assert self.pace.paused == "listening"
        self.look(5, ours=False, live=1, each=each)
        assert self.pace.paused is None


def test_it_listens_first_and_goes_on_at_once_where_nobody_is_heard() -> None:
    clock = Clock()
    assert clock.pace.paused == "listening"
    clock.look(3, ours=False)
    assert clock.pace.paused == "listening"
    clock.look(ours=False)
    assert clock.pace.paused is None
    assert (clock.pace.baseline_s, clock.pace.pauses) == (None, 0)
    assert clock.pace.paused_s(clock.at + 5) == 1.0


def test_live_requests_that_take_longer_than_usual_halve_the_pace_and_stop_it() -> None:
    clock = Clock(slowdown=1.5)
    clock.heard(each=0.1)
    assert clock.pace.baseline_s == pytest.approx(0.1)
    clock.look(ENOUGH, live=1, each=0.14)
    assert (clock.pace.paused, clock.pace.limit) == (None, 1.0)
    clock.look(ENOUGH, live=1, each=0.16)
    assert (clock.pace.paused, clock.pace.limit, clock.pace.pauses) == ("slow", 0.5, 1)
    # What is still in flight, and the look right after it, don't tell how it is without us.
    clock.look(2, ours=True, live=3, each=0.3)
    clock.look(ours=False, live=3, each=0.3)
    assert clock.pace.paused == "slow"
    clock.look(ENOUGH, ours=False, live=1, each=0.1)
    assert clock.pace.paused is None
    assert clock.pace.baseline_s == pytest.approx(0.1)


def test_what_is_slow_without_us_too_becomes_the_usual() -> None:
    clock = Clock(slowdown=1.5)
    clock.heard(each=0.1)
    for _ in range(4):
        clock.look(ENOUGH, live=1, each=0.4)
        clock.look(3 + ENOUGH, ours=False, live=1, each=0.4)
    assert clock.pace.baseline_s == pytest.approx(0.4)
    pauses = clock.pace.pauses
    clock.look(40, live=1, each=0.4)
    assert clock.pace.pauses == pauses


def test_a_live_queue_stops_it_until_it_is_gone() -> None:
    clock = Clock(waiting=2)
    clock.heard()
    clock.look(waiting=2)
    assert clock.pace.paused is None
    clock.look(40, waiting=3)
    assert (clock.pace.paused, clock.pace.pauses) == ("queue", 1)
    assert clock.pace.paused_s(clock.at) == pytest.approx(5 * STEP + 39 * STEP)
    clock.look(waiting=2)
    assert clock.pace.paused is None
    assert clock.pace.paused_s(clock.at + 5) == pytest.approx(5 * STEP + 40 * STEP)


def test_it_listens_anew_to_traffic_that_began_later_and_after_a_while() -> None:
    clock = Clock()
    clock.look(4, ours=False)
    clock.look(ENOUGH, live=1, each=0.19)
    assert (clock.pace.paused, clock.pace.limit, clock.pace.pauses) == ("listening", 1.0, 0)
    clock.look(1 + 5, ours=False, live=1, each=0.1)
    assert clock.pace.baseline_s == pytest.approx(0.1)
    for after in (10, 20, 30, 30):  # the first times sooner
        heard_at = clock.at
        while clock.pace.paused is None:
            clock.look(live=1, each=0.1)
        assert clock.pace.paused == "listening"
        assert after < clock.at - heard_at < after + 2
        clock.look(1 + ENOUGH, ours=False, live=1, each=0.1)


@pytest.mark.parametrize("live", [0, 1])
def test_requests_in_flight_rise_one_by_one_while_nobody_suffers(live: int) -> None:
    clock = Clock(most=3)
    clock.look(5, ours=False, live=live, each=0.12)
    limits = []
    for _ in range(60):
        clock.look(own=0.2, live=live, each=0.12)
        limits.append(clock.pace.limit)
    assert sorted(set(limits)) == [1, 2, 3]
    assert limits == sorted(limits)
    assert limits.index(2) * STEP >= 1.5


def test_they_rise_only_where_live_requests_have_room_for_more() -> None:
    clock = Clock(slowdown=2.0)
    clock.heard(each=0.1)
    for _ in range(100):
        clock.look(own=0.2, live=1, each=0.13)
    assert clock.pace.limit == 1
    while clock.pace.limit < 2:
        clock.look(own=0.2, live=1, each=0.12)
    # With two in flight they feel more than half of what they may: one is enough.
    clock.look(1 + ENOUGH, own=0.2, live=1, each=0.16)
    assert (clock.pace.limit, clock.pace.paused, clock.pace.pauses) == (1, None, 0)


def test_more_in_flight_that_only_makes_each_slower_is_taken_back() -> None:
    clock = Clock()
    clock.look(4, ours=False)
    limits = []
    for _ in range(400):
        clock.look(own=0.2 * clock.pace.limit)
        limits.append(clock.pace.limit)
    assert set(limits) == {1, 2}
    assert limits.count(2) < 0.15 * len(limits)
    assert clock.pace.pauses == 0


def test_it_rests_between_requests_beside_live_traffic_and_below_one() -> None:
    clock = Clock()
    clock.look(4, ours=False)
    assert clock.pace.rest(clock.at) == 0
    clock.look(live=1)
    assert clock.pace.rest(clock.at) == BREATH
    assert clock.pace.rest(clock.at + 6) == 0
    clock.look(waiting=1)
    assert clock.pace.rest(clock.at) == 1  # half of the time
    clock.look(waiting=0)
    clock.look(waiting=1)
    assert clock.pace.rest(clock.at) == 3


def test_below_one_it_rises_by_doubling() -> None:
    clock = Clock()
    clock.heard()
    for _ in range(2):
        clock.look(waiting=1)
        clock.look(waiting=0)
    assert clock.pace.limit == 0.25
    seen = []
    for _ in range(40):
        clock.look(own=0.2)
        seen.append(clock.pace.limit)
    assert sorted(set(seen))[:3] == [0.25, 0.5, 1.0]


def test_a_host_that_tells_nothing_is_judged_by_our_own_answers() -> None:
    clock = Clock(blind=True)
    assert clock.pace.paused is None
    clock.look(4, own=0.1)
    clock.look(2, own=0.5)
    assert (clock.pace.paused, clock.pace.limit, clock.pace.pauses) == ("slow", 0.5, 1)
    clock.look(13, ours=False)
    assert clock.pace.paused == "slow"
    clock.look(ours=False)
    assert clock.pace.paused is None
    # One that stays slow stops us again, and then is the usual.
    for _ in range(12):
        clock.look(ENOUGH, own=0.5)
        clock.look(15, ours=False)
    pauses = clock.pace.pauses
    clock.look(30, own=0.5)
    assert clock.pace.pauses == pauses < 12


looks = st.tuples(
    st.booleans(), st.integers(0, 3), st.integers(0, 4), st.floats(0.01, 5), st.floats(0.01, 5)
)


def test_live_requests_that_we_held_up_do_not_tell_how_it_is_without_us() -> None:
    clock = Clock()
    clock.heard(each=0.1)
    clock.look(ENOUGH, live=1, each=1.0)
    assert clock.pace.paused == "slow"
    # Those that came before the pause get their first token during the next two seconds.
    clock.look(7, ours=False, live=2, each=1.5)
    clock.look(1 + ENOUGH, ours=False, live=1, each=0.12)
    assert clock.pace.paused is None
    assert clock.pace.baseline_s == pytest.approx(0.11)


def test_a_request_of_ours_that_does_not_end_holds_nothing_up_for_ever() -> None:
    clock = Clock()
    clock.heard()
    clock.look(waiting=1)
    clock.look(waiting=0)
    clock.look(ENOUGH, live=1, each=1.0)
    assert clock.pace.paused == "slow"
    clock.look(40, ours=True)
    assert clock.pace.paused is None


@given(st.lists(looks, max_size=120), st.booleans())
def test_whatever_happens_it_goes_on_once_the_queue_is_gone(steps: Any, blind: bool) -> None:
    clock = Clock(blind=blind)
    for ours, waiting, live, each, own in steps:
        clock.look(ours=ours, waiting=waiting, live=live, each=each, own=own if ours else None)
        assert LEAST <= clock.pace.limit <= 4
    began = clock.at
    while clock.pace.paused is not None:
        clock.look(ours=False, live=1)
    assert clock.at - began <= 9
