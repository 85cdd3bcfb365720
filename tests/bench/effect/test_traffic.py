from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.effect.traffic import Ask, asks_of, at_rate, busiest, firsts
from tests.verify.world import request, requests

MORNING = datetime(2026, 3, 17, 9, tzinfo=UTC)


def log(*minutes: float, **fields: Any) -> list[Ask]:
    rows = [
        request(n, n, ts=MORNING + timedelta(minutes=minute), **fields)
        for n, minute in enumerate(minutes)
    ]
    return asks_of(requests(*rows))


def test_requests_are_read_in_order_of_arrival() -> None:
    asks = log(5, 1, 3)
    assert [ask.lookup.request_id for ask in asks] == ["r1", "r2", "r0"]
    assert asks[1].at - asks[0].at == 120


def test_an_answer_that_the_log_lacks_has_a_usual_length() -> None:
    assert log(0, completion_tokens=7)[0].answer_tokens == 7
    assert log(0)[0].answer_tokens == 64


def test_hours_are_ordered_by_what_they_ask_for() -> None:
    nine = int(MORNING.timestamp() // 3600)
    assert busiest(log(0, 61, 62, 121, 122)) == [nine + 1, nine + 2, nine]


def test_a_head_of_another_tenant_is_another_head() -> None:
    mine, theirs = log(0, 1, head_digest="h"), log(2, head_digest="h", tenant="other")
    found = firsts([*mine, *theirs], lambda ask: ask.head)
    assert found == [mine[0], theirs[0]]


def test_a_rate_speeds_the_logs_own_arrivals_up() -> None:
    timed = at_rate(log(0, 1, 4, 10, 11), rate=2, seconds=2)
    assert [due for due, _ in timed] == pytest.approx([0, 0.2, 0.8, 2])
    with pytest.raises(ValueError, match="6 requests are needed and the log has 2"):
        at_rate(log(0, 1), rate=3, seconds=2)
