"""Which prompts and heads are of one template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from warmup_lib.forecast.groups import template_groups
from warmup_lib.lake import Lake
from warmup_lib.tables import TABLES


def store(lake: Lake, table: str, day: str, *rows: dict[str, Any]) -> None:
    schema = TABLES[table].schema
    whole = [dict.fromkeys(schema.names) | row for row in rows]
    lake.replace(table, {"day": day}, pa.Table.from_pylist(whole, schema=schema))


def prompt(tenant: str, digest: str, template: str | None) -> dict[str, Any]:
    return {"tenant": tenant, "response_digest": digest, "template_digest": template}


def test_each_item_of_the_days_has_the_template_of_its_latest_day(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    store(lake, "prompts", "2026-03-12", prompt("acme", "p0", "t9"))
    store(lake, "prompts", "2026-03-13", prompt("acme", "p1", "t1"), prompt("acme", "p2", "t1"))
    store(
        lake,
        "prompts",
        "2026-03-14",
        prompt("acme", "p1", "t2"),
        prompt("zeta", "p1", "t1"),
        prompt("zeta", "p3", None),
    )
    head = {"tenant": "acme", "head_digest": "p1", "template_digest": "t3"}
    store(lake, "heads", "2026-03-14", head)
    rows = template_groups(lake, ["2026-03-13", "2026-03-14"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("head", "acme", "p1", "t3"),
        ("prompt", "acme", "p1", "t2"),
        ("prompt", "acme", "p2", "t1"),
        ("prompt", "zeta", "p1", "t1"),
        ("prompt", "zeta", "p3", None),
    ]


def test_days_without_prompts_have_no_groups(tmp_path: Path) -> None:
    found = template_groups(Lake(str(tmp_path)), ["2026-03-14"])
    assert found.num_rows == 0
    assert found.column_names == ["level", "tenant", "digest", "template_digest"]
