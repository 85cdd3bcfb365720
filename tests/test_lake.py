"""Partitions, manifests and views of the lake."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from warmup_lib.errors import ConfigError, InputDataError
from warmup_lib.lake import Lake
from warmup_lib.tables import TABLES

HEAT = TABLES["heat"]


def heat(*digests: str, micro: int = 1) -> pa.Table:
    rows = [
        {
            "level": "prompt",
            "tenant": "t",
            "digest": d,
            "heat_micro": micro,
            "seen": 1,
            "last_day": "2026-03-14",
        }
        for d in digests
    ]
    return pa.Table.from_pylist(rows, schema=HEAT.schema)


def digests(lake: Lake, day: str = "2026-03-14") -> list[str]:
    return lake.read("heat", {"day": day}, ["digest"]).column(0).to_pylist()


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_replace_keeps_other_partitions_and_reads_back_sorted(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("heat", {"day": "2026-03-13"}, heat("x"))
    before = {p: p.read_bytes() for p in (tmp_path / "heat" / "day=2026-03-13").iterdir()}
    lake.replace("heat", {"day": "2026-03-14"}, heat("c", "a", "b"))
    lake.replace("heat", {"day": "2026-03-14"}, heat("e", "d"))
    assert digests(lake) == ["d", "e"]
    assert {p: p.read_bytes() for p in before} == before
    assert lake.days("heat") == ["2026-03-13", "2026-03-14"]


def test_same_rows_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    names = [f"{i:03}" for i in range(500)]
    shuffled = random.Random(1).sample(names, len(names))
    for folder, order in (("one", names), ("two", shuffled)):
        Lake(str(tmp_path / folder)).replace(
            "heat", {"day": "2026-03-14"}, heat(*order), {"b": 1, "a": 2}
        )
    one, two = (files(tmp_path / f) for f in ("one", "two"))
    assert one == two
    assert all(
        (tmp_path / "one" / f).read_bytes() == (tmp_path / "two" / f).read_bytes() for f in one
    )


def test_append_adds_a_part_once(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    for rows in (heat("a"), heat("b"), heat("a")):
        lake.append("heat", {"day": "2026-03-14"}, rows, {"seen": rows.num_rows})
    manifest = lake.manifest("heat", {"day": "2026-03-14"})
    assert manifest is not None
    assert (manifest.rows, len(manifest.parts), manifest.meta) == (2, 2, {"seen": 1})
    assert sorted(digests(lake)) == ["a", "b"]


def test_a_killed_writer_leaves_the_old_partition_whole_and_the_next_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("heat", {"day": "2026-03-14"}, heat("old"))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            lake.replace("heat", {"day": "2026-03-14"}, heat("new"))
    assert digests(lake) == ["old"]
    with lake.sql() as connection:
        assert connection.execute("SELECT digest FROM heat").fetchall() == [("old",)]
    lake.replace("heat", {"day": "2026-03-14"}, heat("newer"))
    assert digests(lake) == ["newer"]
    assert len(list((tmp_path / "heat" / "day=2026-03-14").glob("*.parquet"))) == 1


def test_views_have_partition_columns_and_exist_without_rows(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("heat", {"day": "2026-03-14"}, heat("a"))
    with lake.sql() as connection:
        rows = connection.execute(
            "SELECT day, digest FROM heat WHERE day = DATE '2026-03-14'"
        ).fetchall()
        assert [(str(d), x) for d, x in rows] == [("2026-03-14", "a")]
        for name, table in TABLES.items():
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            assert [d[0] for d in described] == [*table.schema.names, *table.partition]


def test_partition_values_with_odd_characters_round_trip(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    odd = "a/b=c %*'\u00e9"
    lake.replace("plan", {"plan_id": odd}, TABLES["plan"].empty(), {"kept": True})
    assert lake.partitions("plan") == [{"plan_id": odd}]
    assert lake.drop("plan", {"plan_id": odd}) == 0
    assert lake.partitions("plan") == []


def test_timestamps_survive_with_their_zone(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    at = datetime(2026, 3, 14, 23, 59, 59, 123456, tzinfo=UTC)
    row = dict.fromkeys(TABLES["quarantine"].schema.names) | {"position": 1, "ingested_at": at}
    lake.replace(
        "quarantine",
        {"source": "ab"},
        pa.Table.from_pylist([row], schema=TABLES["quarantine"].schema),
    )
    with lake.sql() as connection:
        sql = "SELECT epoch_us(ingested_at) FROM quarantine"
        assert connection.execute(sql).fetchone() == (int(at.timestamp() * 1e6),)


def test_another_schema_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("heat", {"day": "2026-03-14"}, heat("a"))
    manifest = tmp_path / "heat" / "day=2026-03-14" / "_manifest.json"
    raw = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(raw | {"schema_version": 999}))
    with pytest.raises(InputDataError, match="rebuild"):
        digests(lake)


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    with pytest.raises(InputDataError, match="no such table"):
        lake.partitions("heats")
    with pytest.raises(InputDataError, match="partitioned by"):
        lake.read("heat", {"plan_id": "x"})
    with pytest.raises(ConfigError, match="can't be opened"):
        Lake("nosuchscheme://x")


def test_an_object_store_works_like_a_folder() -> None:
    lake = Lake("memory://lake-test")
    lake.replace("heat", {"day": "2026-03-14"}, heat("b", "a"))
    lake.append("heat", {"day": "2026-03-14"}, heat("c"))
    assert sorted(digests(lake)) == ["a", "b", "c"]
    with lake.sql() as connection:
        assert connection.execute("SELECT count(*) FROM heat").fetchone() == (3,)
