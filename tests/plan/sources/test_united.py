"""What sources name joins what the log's demand chose: pinned first, then by weighted hits."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.plan.selection import Choice
from warmup_lib.plan.sources.proposed import Proposed
from warmup_lib.plan.sources.registry import SOURCES
from warmup_lib.plan.sources.united import all_of, united

BIT = {name: 1 << place for place, name in enumerate(SOURCES)}


def choice(**expected: int) -> Choice:
    rows = np.array([int(name[1:]) for name in expected], np.int64)
    values = np.array(list(expected.values()), np.int64)
    return Choice(rows, values, np.ones_like(rows), rows)


def proposed(*sources: Any, weight: dict[str, float] | None = None) -> Proposed:
    names = [(one,) if isinstance(one, str) else one for one in sources]
    by = np.array([sum(BIT[name] for name in row) for row in names], np.int64)
    heavy = [max((weight or {}).get(name, 1.0) for name in row) for row in names]
    return Proposed(by, np.array(heavy), 9)


def test_pinned_goes_first_and_the_rest_by_expected_hits() -> None:
    who = proposed("queries", "queries", "pinned", "intents", ("queries", "pinned"))
    both = united(choice(r0=5, r1=2, r4=1), choice(r3=3, r2=0), who, 9)
    assert both.rows.tolist() == [4, 2, 0, 3, 1]
    assert both.expected.tolist() == [1, 0, 5, 3, 2]
    assert both.by_log is not None
    assert both.by_log.tolist() == [True, False, True, False, True]
    assert [who.sources(int(r), bool(b)) for r, b in zip(both.rows, both.by_log, strict=True)] == [
        ["queries", "pinned"],
        ["pinned"],
        ["queries"],
        ["intents"],
        ["queries"],
    ]


def test_weight_moves_the_order_and_never_what_is_expected() -> None:
    who = proposed("queries", "intents", weight={"intents": 2.0})
    both = united(choice(r0=5), choice(r1=3), who, 9)
    assert both.rows.tolist() == [1, 0]
    assert both.expected.tolist() == [3, 5]
    assert united(choice(r0=5), choice(r1=3), who, 1).rows.tolist() == [1]
    lighter = proposed("queries", "intents", weight={"intents": 0.1, "queries": 1.0})
    assert united(choice(r0=1), choice(r1=3), lighter, 9).rows.tolist() == [0, 1]


def test_what_the_log_did_not_choose_is_named_by_the_others_alone() -> None:
    who = proposed(("queries", "intents", "pinned"))
    assert who.sources(0, True) == ["queries", "intents", "pinned"]
    assert who.sources(0, False) == ["intents", "pinned"]
    assert Proposed.by_demand(1).sources(0, True) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["queries", "intents", "pinned"])), max_size=20
    ),
    st.integers(0, 20),
)
def test_no_row_is_lost_or_doubled_within_the_limit(
    rows: list[tuple[int, str]], limit: int
) -> None:
    who = proposed(*(source for _, source in rows))
    heat = np.array([heat for heat, _ in rows], np.int64)
    rank = np.arange(len(rows))
    own, named = (all_of(heat, rank, mask) for mask in (~who.named, who.named))
    both = united(own, named, who, limit)
    assert len(set(both.rows.tolist())) == len(both.rows) == min(limit, len(rows))
    assert (both.expected == heat[both.rows]).all()
    pinned = who.pinned[both.rows]
    assert not (np.diff(pinned.astype(int)) > 0).any()  # none after one that is not
    if limit >= len(rows):
        assert sorted(both.rows.tolist()) == list(range(len(rows)))
