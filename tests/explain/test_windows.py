"""What was replayed has to be what is explained: a few rows of a day are not that day."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.apply.memory import MemoryTarget
from tests.explain.made import KEYS, asked, row_of
from tests.explain.test_stage import DAY, ITEMS, LATER, go, lake, replay, requests, table
from tests.explain.test_unplanned import Angles, no_vectors
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.explain.stage import explain
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context
from warmup_lib.stage import StageReport
from warmup_lib.tables import REQUESTS
from warmup_lib.verify.measuring import Subject
from warmup_lib.verify.window import Window, from_rows

__all__ = ["lake"]


def few(*idents: str) -> Window:
    rows = [row_of(asked(request_id=ident)) for ident in idents]
    flags = dict.fromkeys(["warmup", "health", "cache_hit"], False)
    return from_rows(table(REQUESTS.schema, *[flags | row for row in rows]), Config(), DAY)


def explained(lake: Lake, window: Window) -> StageReport:
    targets: Any = [MemoryTarget("redis")]
    context = Context("p", Config(), KEYS, Angles())
    subject = Subject(lake, ITEMS, DAY, (), targets, context)
    return asyncio.run(explain(subject, window, no_vectors))


def test_rows_of_a_day_that_was_replayed_are_no_part_of_it(lake: Lake) -> None:
    replay(lake, ("r1", False))
    day = go(lake).facts
    with pytest.raises(InputDataError, match=r"2 requests of 2026-03-16-file-.* not replayed"):
        explained(lake, few("r1", "r2"))
    [held] = lake.partitions("causes")
    assert (held["window"], day["causes"]) == (LATER, {"not_applied": 1})
    assert lake.read("causes", held).num_rows == 1


def test_a_file_is_explained_by_its_own_replay(lake: Lake) -> None:
    replay(lake, ("r1", True))
    window = few("r1")
    replay(lake, ("r1", False), window=window.name)
    assert explained(lake, window).facts["causes"] == {"not_applied": 1}
    assert go(lake).facts["misses"] == 0
    assert [p["window"] for p in lake.partitions("causes")] == [LATER, window.name]


def test_requests_that_came_into_a_day_after_its_replay_have_to_be_verified(lake: Lake) -> None:
    replay(lake, ("r1", True))
    requests(lake, row_of(asked()), row_of(asked(request_id="late")))
    with pytest.raises(InputDataError, match=r"1 requests of 2026-03-16 .* not replayed"):
        go(lake)
    replay(lake)
    with pytest.raises(InputDataError, match=r"2 requests of 2026-03-16 .* not replayed"):
        go(lake)
    assert not lake.partitions("causes")


def test_each_layer_in_which_all_are_looked_up_has_to_be_replayed(lake: Lake) -> None:
    replay(lake, ("r1", False))
    window = {"plan_id": "p", "window": LATER}
    hits = lake.read("hits", window)
    lake.replace("hits", window, hits.filter(pc.equal(hits["layer"], "responses")))
    with pytest.raises(InputDataError, match=r"1 requests of 2026-03-16 .* not replayed"):
        go(lake)
