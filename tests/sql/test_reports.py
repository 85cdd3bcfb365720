"""Runs every report on its fixtures: input tables in YAML, expected rows in YAML."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.reports import find_reports, run_report
from warmup_lib.tables import TABLES

HERE = Path(__file__).parent
CASES = sorted(p.parent for p in HERE.glob("*/test_*/expect.yaml"))


def fill(lake: Lake, case: Path) -> None:
    """Write the case's input tables; columns that a fixture leaves out are null."""
    for file in case.glob("*.yaml"):
        if file.stem not in TABLES:
            continue
        table = TABLES[file.stem]
        partitions: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in yaml.safe_load(file.read_text()):
            key = tuple(str(row.pop(k)) for k in table.partition)
            partitions.setdefault(key, []).append({n: row.get(n) for n in table.schema.names})
        for key, rows in partitions.items():
            for row in rows:
                for name, value in row.items():
                    if isinstance(value, datetime):
                        row[name] = value.replace(tzinfo=UTC)
            lake.replace(
                table.name,
                dict(zip(table.partition, key, strict=True)),
                pa.Table.from_pylist(rows, schema=table.schema),
            )


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_report_gives_the_expected_rows(case: Path, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill(lake, case)
    params = yaml.safe_load((case / "query_params.yaml").read_text())
    name = case.parent.name.rpartition("_v")[0]
    result = run_report(lake, name, params.get("day"))
    expected = yaml.safe_load((case / "expect.yaml").read_text())
    got = [dict(zip(result.columns, map(plain, r), strict=True)) for r in result.rows]
    assert got == [{k: plain(v) for k, v in row.items()} for row in expected["rows"]]
    assert result.failed == expected.get("failed", [])
    assert result.warned == expected.get("warned", [])


@pytest.mark.parametrize("name", find_reports())
def test_report_is_documented_and_its_columns_are_as_declared(name: str, tmp_path: Path) -> None:
    report = find_reports()[name]
    result = run_report(Lake(str(tmp_path)), name, "2026-03-14")
    assert result.columns == [c["name"] for c in report.columns]
    assert all(c["description"] and c["unit"] for c in report.columns)
    assert {"friendly_name", "description", "owners", "labels"} <= set(report.metadata)
    assert report.checks
    assert "SELECT *" not in report.query.upper()
    assert "ORDER BY" in report.query.upper()


@pytest.mark.parametrize("name", find_reports())
def test_every_report_has_a_fixture(name: str) -> None:
    assert any(c.parent.name.startswith(f"{name}_v") for c in CASES)


def test_unknown_report_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="top_clusters"):
        run_report(Lake(str(tmp_path)), "no_such_report")
