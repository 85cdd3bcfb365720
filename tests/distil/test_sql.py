"""How requests of one identity become one row: texts, answers, counts and reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.distil.stage import run
from warmup_lib.lake import Lake

DAY = "2026-03-14"
Row = dict[str, Any]


@pytest.fixture
def distil(
    store_requests: Callable[..., Lake], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[list[Row], list[Row]]]:
    """Return a function from requests to the rows of `prompts` and `heads`."""

    def rows(*requests: Row) -> tuple[list[Row], list[Row]]:
        lake = store_requests(tmp_path_factory.mktemp("lake"), list(requests))
        run(lake, DAY, Config())
        partition = {"day": DAY}
        return lake.read("prompts", partition).to_pylist(), lake.read(
            "heads", partition
        ).to_pylist()

    return rows


def test_demand_is_all_but_our_own_traffic(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    prompts, _ = distil(
        request_row(1, "hi"),
        request_row(2, "hi", cache_hit=True),
        request_row(3, "hi", bypass=True),
        request_row(4, "hi", status=503),
        request_row(5, "hi", status=None, cache_hit=None, bypass=None, redacted=None),
        request_row(6, "hi", warmup=True),
        request_row(7, "hi", health=True),
    )
    (row,) = prompts
    counts = {k: row[k] for k in ("requests", "cache_hits", "bypassed", "failed")}
    assert counts == {"requests": 5, "cache_hits": 1, "bypassed": 1, "failed": 1}
    assert row["first_ts"].second == 1
    assert row["last_ts"].second == 5
    assert row["unwarmable"] is None


def test_the_most_frequent_form_is_kept_and_the_smallest_on_ties(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    prompts, _ = distil(
        request_row(1, "reset  PIN", locale="de", intent="b", user_segment=None),
        request_row(2, "reset PIN", locale="en", intent="a"),
        request_row(3, "reset PIN", locale="en", intent=None),
        request_row(4, "reset pin"),
    )
    by_text = {row["text"]: row for row in prompts}
    assert set(by_text) == {"reset PIN", "reset pin"}
    kept = by_text["reset PIN"]
    assert (kept["requests"], kept["locale"], kept["intent"]) == (3, "en", "a")
    assert kept["user_segment"] is None
    # Letter case tells answers apart, embeddings not.
    assert len({row["response_digest"] for row in prompts}) == 2
    assert len({row["text_digest"] for row in prompts}) == 1


def test_sampling_parameters_are_kept_for_an_answer_to_generate(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    params = json.dumps({"max_tokens": 20.0, "temperature": 0.2})
    prompts, _ = distil(
        request_row(1, "hi", params=params, bypass=True),
        request_row(2, "hi", params=params),
        request_row(3, "bye"),
    )
    assert {row["text"]: row["params"] for row in prompts} == {"hi": params, "bye": "{}"}


USABLE = [
    {"response": "old"},
    {"response": "new"},
    {"response": "  \n"},
    {"response": None},
    {"response": "failed", "status": 500},
    {"response": "with a name", "redacted": True},
    {"response": "private", "cache_control": "private, No-Store"},
    {"response": "one user's", "cache_control": "max-age=60, private"},
    {"response": "went round", "bypass": True},
    {"response": "cut", "extra": json.dumps({"finish_reason": "length"})},
    {"response": "cut too", "params": json.dumps({"max_tokens": 20.0}), "completion_tokens": 20},
]


def test_the_latest_usable_answer_is_kept(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    prompts, _ = distil(*(request_row(i, "hi", **fields) for i, fields in enumerate(USABLE)))
    assert prompts[0]["response"] == "new"
    assert prompts[0]["unwarmable"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"extra": json.dumps({"finish_reason": "stop"}), "completion_tokens": 20},
        {"extra": json.dumps({"trace": "x"}), "completion_tokens": 19},
        {"completion_tokens": None},
    ],
)
def test_an_answer_that_ended_by_itself_is_usable(
    fields: Row, distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    limit = json.dumps({"max_tokens": 20.0})
    prompts, _ = distil(request_row(1, "hi", params=limit, response="done", **fields))
    assert prompts[0]["response"] == "done"


def test_answers_at_one_moment_are_settled_by_request_id(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    late = request_row(5, "hi", response="b", chunk_ids=["c2"], request_id="r2")
    early = request_row(5, "hi", response="a", chunk_ids=["c1"], request_id="r1")
    for order in ((late, early), (early, late)):
        prompts, _ = distil(*order)
        assert (prompts[0]["response"], prompts[0]["chunk_ids"]) == ("b", ["c2"])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"redacted": True}, {"redacted": True, "bypass": True}], "redacted"),
        ([{"bypass": True}, {"cache_control": "no-store"}], "no_store"),
        ([{"cache_control": "private"}, {"cache_control": "max-age=0, No-Store"}], "no_store"),
        ([{"cache_control": "privately, no-stores, public"}], None),
        ([{"status": 429}, {"status": 500}], "failed_only"),
        ([{"status": 429}, {"bypass": True}], None),
        ([{"redacted": True}, {}], None),
    ],
)
def test_a_prompt_is_unwarmable_when_every_request_of_it_is(
    rows: list[Row], reason: str | None, distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    prompts, _ = distil(*(request_row(i, "hi", **fields) for i, fields in enumerate(rows)))
    assert prompts[0]["unwarmable"] == reason


def test_heads_are_counted_and_their_first_token_time_is_the_models(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    _, heads = distil(
        request_row(1, "a", system_prompt="S", ttft_ms=100.0),
        request_row(2, "b", system_prompt="S", ttft_ms=200.5),
        request_row(3, "c", system_prompt="S", ttft_ms=1.0, cache_hit=True),
        request_row(4, "d", system_prompt="S", redacted=True),
        request_row(5, "e"),
        request_row(6, "f", system_prompt=""),
        request_row(7, "g", system_prompt="T", redacted=True),
    )
    seen = {h["system_prompt"]: (h["requests"], h["mean_ttft_ms"], h["unwarmable"]) for h in heads}
    assert seen == {"S": (4, 150.25, None), "T": (1, None, "redacted")}


def test_the_length_of_a_prompt_is_the_logged_one_else_an_estimate_of_all_that_was_sent(
    distil: Callable[..., Any], request_row: Callable[..., Row]
) -> None:
    prompts, _ = distil(
        request_row(1, "logged", prompt_tokens=900),
        request_row(2, "logged", prompt_tokens=901),
        request_row(3, "logged", prompt_tokens=None),
        request_row(4, "x" * 40, system_prompt="y" * 400, tools="z" * 80, history="h" * 8),
        request_row(5, "退款", system_prompt=None),
    )
    known = {row["text"]: row["prompt_tokens"] for row in prompts}
    # (40 + 400 + 80 + 8) / 4; a Chinese character of three bytes is one token.
    assert known == {"logged": 901, "x" * 40: 132, "退款": 2}
