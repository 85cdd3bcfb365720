"""The counts that estimators are tried on are those of the lake, or a fair part of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.forecast.test_stage import DAY, day_before, store
from warmup_lib.forecast import history
from warmup_lib.forecast.history import read_counts
from warmup_lib.lake import Lake

if TYPE_CHECKING:
    import pytest


def digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def test_counts_are_by_tenant_item_and_day(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    store(lake, day_before(2), {"acme/aa": 3, "zeta/aa": 5})
    store(lake, DAY, {"acme/aa": 1, "acme/bb": 2})
    days = (day_before(2), DAY)
    with lake.sql() as connection:
        counts, share = read_counts(connection, "prompt", days)
    assert share == 1
    assert counts.tenants == ("acme", "zeta")
    rows = sorted(zip(counts.tenant.tolist(), counts.requests.toarray().tolist(), strict=True))
    assert rows == [(0, [0.0, 2.0]), (0, [3.0, 1.0]), (1, [5.0, 0.0])]


def test_a_large_history_is_sampled_by_item_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SAMPLE", 100)
    lake = Lake(str(tmp_path))
    for age in (0, 1):
        store(lake, day_before(age), {f"acme/{digest(n)}": 2 for n in range(400)})
    with lake.sql() as connection:
        counts, share = read_counts(connection, "prompt", (day_before(1), DAY))
    assert share == 0.25
    assert 60 < len(counts.tenant) < 140
    assert (counts.requests.toarray() == 2).all()
