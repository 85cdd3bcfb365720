"""A segment's demand is its share of each prompt's heat, out of the requests themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.plan.building import BEFORE, DAY, embed, fill, prompt
from tests.verify.world import NOON, request
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.plan.demand import read_demand
from warmup_lib.tables import MICRO, REQUESTS

SECRET = "a secret of the segments' tests"
KEYS = Keys(SECRET.encode())


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)


def asked(digest: str, segment: str | None, times: int, **fields: Any) -> list[dict[str, Any]]:
    row = {"response_digest": digest, "user_segment": segment, "ts": NOON, **fields}
    return [request(n, 0, **row) for n in range(times)]


def lake(root: Path, prompts: list[dict[str, Any]], *requests: list[dict[str, Any]]) -> Lake:
    made = fill(root, {DAY: prompts})
    embed(made, {f"t-{p['response_digest']}": 1.0 for p in prompts})
    for day, rows in zip((BEFORE, DAY), requests, strict=False):
        made.replace("requests", {"day": day}, pa.Table.from_pylist(rows, REQUESTS.schema))
    return made


def segments(of: Lake, **scope: Any) -> dict[tuple[str, str, str], float]:
    demand = read_demand(of, DAY, Config(), "enc", 4, **scope)
    assert demand.segments is not None
    rows = demand.segments.to_pylist()
    assert [r["segment_digest"] for r in rows] == [
        KEYS.segment_digest(r["user_segment"]) for r in rows
    ]
    return {
        (r["tenant"], r["user_segment"], r["text_digest"]): r["heat_micro"] / MICRO for r in rows
    }


def test_a_question_that_all_ask_counts_for_each_segment_by_its_share(tmp_path: Path) -> None:
    made = lake(
        tmp_path,
        [prompt("a", 10), prompt("b", 4)],
        [],
        [
            *asked("a", "standard", 6),
            *asked("a", "vip", 3),
            *asked("a", None, 1),
            *asked("b", "vip", 4),
        ],
    )
    assert segments(made) == {
        ("acme", "standard", "t-a"): 6.0,
        ("acme", "vip", "t-a"): 3.0,
        ("acme", "vip", "t-b"): 4.0,
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"redacted": True},
        {"warmup": True},
        {"health": True},
        {"bypass": True},
        {"cache_control": "private, No-Store"},
        {"user_segment": "  "},
    ],
)
def test_what_may_not_be_known_of_a_segment_does_not_count(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    rows = [*asked("a", "vip", 1), *asked("a", "vip", 1, **fields)]
    made = lake(tmp_path, [prompt("a", 2)], [], rows)
    assert segments(made) == {("acme", "vip", "t-a"): 1.0}


def test_unwarmable_prompts_and_those_out_of_scope_do_not_count(tmp_path: Path) -> None:
    prompts = [prompt("a", 2), prompt("b", 2, unwarmable="redacted"), prompt("c", 2, model="big")]
    rows = [*asked("a", "vip", 2), *asked("b", "vip", 2), *asked("c", "vip", 2)]
    rows += asked("a", "vip", 2, tenant="unknown")
    made = lake(tmp_path, prompts, [], rows)
    assert set(segments(made)) == {("acme", "vip", "t-a"), ("acme", "vip", "t-c")}
    assert set(segments(made, models=["small"])) == {("acme", "vip", "t-a")}
    assert segments(made, tenants=["other"]) == {}


def test_no_segments_need_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", "short")
    made = lake(tmp_path, [prompt("a", 2)], [], asked("a", None, 2))
    assert segments(made) == {}
