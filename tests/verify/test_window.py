"""Only demand that asked the caches is judged; what went round them is counted apart."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.verify.world import request, requests
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.verify.window import from_lake, from_rows, lookups

ROWS = requests(
    request(3, 1),
    request(1, 2),
    request(4, 1, bypass=True),
    request(5, 1, warmup=True),
    request(6, 1, health=True),
    request(7, 1, warmup=True, bypass=True),
    request(2, 3, cache_hit=True),
)


def test_own_traffic_is_out_and_bypasses_are_counted_apart(tmp_path: Path) -> None:
    lake = Lake(f"file://{tmp_path}")
    lake.replace("requests", {"day": "2026-03-15"}, ROWS)
    window = from_lake(lake, "2026-03-15", "2026-03-14")
    assert [lookup.request_id for lookup in lookups(window.rows)] == ["r1", "r2", "r3"]
    assert (window.bypassed, window.own, window.in_sample) == (1, 3, False)
    assert window.bypass_share == 0.25
    assert window.name == "2026-03-15"


@pytest.mark.parametrize("plan_day", ["2026-03-15", "2026-03-16"])
def test_traffic_that_the_plan_knew_is_in_sample(tmp_path: Path, plan_day: str) -> None:
    lake = Lake(f"file://{tmp_path}")
    lake.replace("requests", {"day": "2026-03-15"}, ROWS)
    assert from_lake(lake, "2026-03-15", plan_day).in_sample


def test_a_missing_day_names_the_known_ones(tmp_path: Path) -> None:
    lake = Lake(f"file://{tmp_path}")
    with pytest.raises(
        InputDataError, match="no requests of 2026-03-15 in the lake; there are non"
    ):
        from_lake(lake, "2026-03-15", "2026-03-14")
    lake.replace("requests", {"day": "2026-03-14"}, ROWS)
    with pytest.raises(InputDataError, match="there are 2026-03-14 to 2026-03-14"):
        from_lake(lake, "2026-03-15", "2026-03-14")


def test_files_are_named_by_the_days_of_the_configured_zone_and_what_they_ask() -> None:
    late = request(9, 1, ts=datetime(2026, 3, 15, 20, tzinfo=UTC))
    rows = requests(request(1, 1), late)
    assert re.fullmatch(
        "2026-03-15-file-[0-9a-f]{12}", name := from_rows(rows, Config(), "2026-03-14").name
    )
    china = from_rows(rows, Config(timezone="Asia/Shanghai"), "2026-03-15")
    assert china.name.startswith("2026-03-15..2026-03-16-file-")
    assert china.in_sample  # its first day is the plan's last
    again = requests(late, request(1, 1))
    assert from_rows(again, Config(), "2026-03-14").name == name
    for other in (requests(request(1, 1)), requests(request(1, 2), late)):
        assert from_rows(other, Config(), "2026-03-14").name != name


def test_a_file_without_requests_is_refused() -> None:
    with pytest.raises(InputDataError, match="no requests that can be used"):
        from_rows(requests(), Config(), "2026-03-14")
