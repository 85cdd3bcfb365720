from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from samples import parameters, texts
from samples.demand import Opening
from samples.serving import Gateway, line, stamp
from samples.sessions import Turn, turns
from samples.shipped import Shipped

MINUTE = 60_000


@pytest.fixture
def gateway() -> Gateway:
    return Gateway(1, np.random.default_rng(1))


def first(name: str, intent: str) -> Turn:
    tenant = texts.tenant(name)
    pool = Shipped().pool(tenant, 200, np.random.default_rng(2))
    index = next(i for i, p in enumerate(pool) if p.intent == intent and p.locale == "en")
    found = turns(tenant, pool, [Opening(0, index)], 100.0, np.random.default_rng(1))
    return next(iter(found))


def served(gateway: Gateway, turn: Turn, *minutes: float) -> list[dict[str, Any]]:
    """Serve a turn again and again until it succeeds each time."""
    out = []
    for minute in minutes:
        row = gateway.serve(replace(turn, at_ms=int(minute * MINUTE)))
        while row["status"] != 200 or row["cache_control"] or row["skip_cache"]:
            row = gateway.serve(replace(turn, at_ms=int(minute * MINUTE) + 1))
        out.append(row)
    return out


def test_stamp() -> None:
    assert stamp(0) == "2026-03-04T00:00:00.000Z"
    assert stamp(13 * 86_400_000 + 3_723_004) == "2026-03-17T01:02:03.004Z"


def test_a_head_is_cold_once_and_again_after_ten_quiet_minutes(gateway: Gateway) -> None:
    turn = first("acme-bank", "card_lost")
    cold, warm, later = served(gateway, turn, 1, 5, 30)
    assert cold["cached_tokens"] == later["cached_tokens"] == 0
    assert warm["cached_tokens"] % parameters.CACHE_BLOCK == 0
    assert 0.9 < warm["cached_tokens"] / warm["prompt_tokens"] < 1
    assert cold["ttft_ms"] > 1_000 > 500 > warm["ttft_ms"]
    assert cold["latency_ms"] > cold["ttft_ms"]


def test_another_section_shares_the_policy_but_another_adapter_nothing(gateway: Gateway) -> None:
    one, other = first("nordwind-travel", "visa_docs"), first("nordwind-travel", "strike_delay")
    adapted = first("nordwind-travel", "baggage")
    assert one.area == other.area != adapted.area
    elsewhere = replace(one, arm="guided")
    served(gateway, one, 1)
    (shared,) = served(gateway, elsewhere, 2)
    (alone,) = served(gateway, adapted, 2.5)
    assert 0.85 < shared["cached_tokens"] / shared["prompt_tokens"] < 1
    assert alone["cached_tokens"] == 0


def test_a_clock_at_the_front_keeps_the_head_cold(gateway: Gateway) -> None:
    turn = first("hearth-home", "stain_removal")
    rows = served(gateway, replace(turn, text="a"), 1) + served(gateway, replace(turn, text="b"), 2)
    assert [row["cached_tokens"] for row in rows] == [0, 0]
    assert rows[0]["system_prompt"] != rows[1]["system_prompt"]


def test_an_answer_cache_serves_the_same_question_for_an_hour(gateway: Gateway) -> None:
    turn = first("lanting-shop", "coupon")
    rows = served(gateway, turn, 1, 50, 120)
    assert [row["served_from"] for row in rows] == [None, "responses", None]
    assert rows[1]["latency_ms"] < 20
    assert rows[1]["ttft_ms"] == rows[1]["latency_ms"]
    bank = served(gateway, first("acme-bank", "card_lost"), 121, 122)
    assert [row["served_from"] for row in bank] == [None, None]


def test_a_queue_makes_the_first_token_wait() -> None:
    turn = first("codeforge", "regex_help")
    quiet, busy = (Gateway(1, np.random.default_rng(5)) for _ in range(2))
    alone = [quiet.serve(replace(turn, at_ms=i * MINUTE))["latency_ms"] for i in range(40)]
    crowd = [busy.serve(replace(turn, at_ms=i))["latency_ms"] for i in range(40)]
    assert np.mean(crowd) > np.mean(alone) + 10 * 35


def test_ids_depend_on_the_seed_alone() -> None:
    turn = first("codeforge", "regex_help")
    ids = [Gateway(s, np.random.default_rng(9)).serve(turn)["request_id"] for s in (1, 1, 2)]
    assert ids[0] == ids[1] != ids[2]


def test_a_line_is_compact_json_in_utf8(gateway: Gateway) -> None:
    turn = replace(first("lanting-shop", "coupon"), text="怎么用优惠券")
    written = line(gateway.serve(turn))
    assert "怎么用优惠券".encode() in written
    assert written.endswith(b"}\n")
    assert b"\n" not in written[:-1]
