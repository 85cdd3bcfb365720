"""Warm-up that was sent and did not work, by the receipts of the latest plan."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner

from warmup_lib.cli import main
from warmup_lib.doctor.weight_shards import look_at_receipts
from warmup_lib.lake import Lake
from warmup_lib.tables import RECEIPTS

NOON = datetime(2026, 3, 16, 12, tzinfo=UTC)


def receipts(*given: tuple[str, list[int] | None]) -> pa.Table:
    """Return receipts of 100 steps to each rank: target, and the steps that worked by rank."""
    rows: list[dict[str, Any]] = [
        dict.fromkeys(RECEIPTS.schema.names)
        | {
            "item_id": "weights-m",
            "layer": "weights",
            "tenant": "*",
            "target": target,
            "target_epoch": "1",
            "status": "warmed",
            "issued": 100 if effective else None,
            "effective": effective,
            "at": NOON + timedelta(minutes=number),
        }
        for number, (target, effective) in enumerate(given)
    ]
    return pa.Table.from_pylist(rows, schema=RECEIPTS.schema)


def test_steps_that_did_not_work_on_a_rank_are_found() -> None:
    part = look_at_receipts(receipts(("a", [100, 98]), ("b", [100, 100])))
    assert part is not None
    assert part.status == "found"
    assert part.evidence == "on 'a' 100 steps were issued to each rank, 100 / 98 worked"
    assert "--resume" in part.remedy


def test_the_latest_receipt_of_a_target_counts() -> None:
    part = look_at_receipts(receipts(("a", [100, 98]), ("a", [100, 100])))
    assert part is not None
    assert (part.status, part.evidence) == (
        "ok",
        "all of 200 warm-up steps of the latest plan worked",
    )


def test_receipts_without_steps_tell_nothing() -> None:
    assert look_at_receipts(receipts(("a", None))) is None


def test_the_command_reads_the_latest_plan_of_the_lake(tmp_path: Path) -> None:
    lake = Lake(f"file://{tmp_path}/lake")
    lake.replace("receipts", {"plan_id": "p1"}, receipts(("a", [100, 98])))
    lake.name_latest("p1")
    done = CliRunner().invoke(main, ["doctor", "--json", "--lake", f"file://{tmp_path}/lake"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["traps"]["weight_shards"]["status"] == "found"
