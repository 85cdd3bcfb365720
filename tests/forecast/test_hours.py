"""Hours of the day: shares add up to one, in the configured zone, and rare tenants borrow."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.forecast.hours import HOURS, Hours
from warmup_lib.tables import MICRO


def rows(*of: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "tenant": tenant,
                "day": "2026-03-14",
                "hour": datetime(2026, 3, 14, hour, tzinfo=UTC),
                "requests": requests,
            }
            for tenant, hour, requests in of
        ]
    )


WEIGHTS = {"2026-03-14": 5}


def test_hours_are_those_of_the_zone() -> None:
    zone = ZoneInfo("Asia/Shanghai")
    counts = rows(("acme", 2, 300), ("acme", 3, 100))
    found = Hours.of(counts, WEIGHTS, zone).profiles().to_pylist()
    shares = {row["hour"]: row["share_micro"] for row in found}
    assert (shares[10], shares[11]) == (750_000, 250_000)
    assert Hours.of(counts, WEIGHTS, zone).peak == 10


def test_a_rare_tenant_has_mostly_the_hours_of_all() -> None:
    counts = rows(("big", 9, 100_000), ("small", 20, 2))
    shares = {
        (row["tenant"], row["hour"]): row["share_micro"]
        for row in Hours.of(counts, WEIGHTS, UTC).profiles().to_pylist()
    }
    assert shares["small", 9] > 0.9 * MICRO
    assert shares["big", 9] > 0.99 * MICRO


def test_without_requests_there_is_no_peak() -> None:
    empty = Hours.of(rows(("acme", 1, 1)).slice(0, 0), WEIGHTS, UTC)
    assert empty.peak is None
    assert empty.profiles().num_rows == 0


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 23), st.integers(1, 10**6)), min_size=1
    )
)
def test_shares_of_a_tenant_add_up_to_one(of: list[tuple[str, int, int]]) -> None:
    found = Hours.of(rows(*of), WEIGHTS, UTC).profiles().to_pylist()
    for tenant in {tenant for tenant, _, _ in of}:
        ours = [row["share_micro"] for row in found if row["tenant"] == tenant]
        assert len(ours) == HOURS
        assert sum(ours) == MICRO
        assert min(ours) >= 0
