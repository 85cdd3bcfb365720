"""clusters and members out of the history."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from warmup_lib.cluster.stage import run
from warmup_lib.config import Config
from warmup_lib.embed.stage import run as embed
from warmup_lib.errors import InputDataError
from warmup_lib.forecast.stage import run as forecast
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.tables import PROMPTS

ONE, TWO = "2026-03-13", "2026-03-14"
KEYS = Keys(b"a secret for the tests of cluster")
CARDS = ["my card is lost", "I have lost the bank card", "card lost", "where is my lost card"]
RAIN = ["does it rain today", "will there be rain in Oslo today", "后天上海会下雪吗", "rain today?"]


def prompts(
    *texts: str, tenant: str = "acme", requests: int = 1, **fields: Any
) -> list[dict[str, Any]]:
    """Return rows of `prompts`, one a text."""
    rows = []
    for text in texts:
        row: dict[str, Any] = dict.fromkeys(PROMPTS.schema.names)
        row |= {"tenant": tenant, "model": "m", "text": text, "requests": requests}
        row |= {"text_digest": KEYS.text_digest(text)}
        row |= {"response_digest": KEYS.digest("response", tenant, text)}
        rows.append(row | fields)
    return rows


def store(root: Path, days: dict[str, list[dict[str, Any]]], *, last: str = TWO) -> Lake:
    """Store prompts, embed every day and forecast the last one."""
    lake = Lake(str(root))
    for day, rows in days.items():
        lake.replace("prompts", {"day": day}, pa.Table.from_pylist(rows, schema=PROMPTS.schema))
        embed(lake, day, Config())
    forecast(lake, last, Config())
    return lake


def content(root: Path) -> dict[str, bytes]:
    return {
        f"{table}/{p.name}": p.read_bytes()
        for table in ("clusters", "members")
        for p in (root / table / f"day={TWO}").iterdir()
    }


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return store(
        tmp_path,
        {
            ONE: [*prompts(*CARDS, requests=9), *prompts("refund", tenant="zeta")],
            TWO: [*prompts(*RAIN), *prompts("CARD lost")],
        },
    )


def test_tenants_are_clustered_apart_over_all_days_and_named(lake: Lake) -> None:
    config = Config.model_validate({"cluster": {"per_tenant": 2}})
    report = run(lake, TWO, config)
    rows = lake.read("clusters", {"day": TWO}).to_pylist()
    assert [r["cluster_id"] for r in rows] == ["acme/001", "acme/002", "zeta/001"]
    cards, rain, refund = rows
    assert (cards["prompts"], cards["requests"]) == (4, 37)
    assert cards["label"] in [*CARDS, "CARD lost"]
    assert "card" in cards["keywords"]
    assert (rain["prompts"], rain["requests"]) == (4, 4)
    assert rain["label"] in RAIN
    assert "rain" in rain["keywords"]
    assert (refund["tenant"], refund["label"]) == ("zeta", "refund")
    assert {r["encoder"] for r in rows} == {report.facts["encoder"]}
    heat = lake.read("heat", {"day": TWO})["heat_micro"].to_pylist()
    members = lake.read("members", {"day": TWO})
    assert sum(members["heat_micro"].to_pylist()) == sum(heat)
    assert (report.rows_in, report.rows_out, members.num_rows) == (9, 3, 9)
    assert report.notes == ()


def test_twice_is_the_same_bytes_and_so_is_another_lake(lake: Lake, tmp_path: Path) -> None:
    run(lake, TWO, Config())
    first = content(tmp_path)
    run(lake, TWO, Config())
    assert content(tmp_path) == first
    other = store(
        tmp_path / "other",
        {
            ONE: [*prompts("refund", tenant="zeta"), *prompts(*CARDS[::-1], requests=9)],
            TWO: [*prompts("CARD lost"), *prompts(*RAIN[::-1])],
        },
    )
    run(other, TWO, Config())
    members = [lk.read("members", {"day": TWO}).to_pylist() for lk in (lake, other)]
    assert [(m["cluster_id"], m["text_digest"]) for m in members[0]] == [
        (m["cluster_id"], m["text_digest"]) for m in members[1]
    ]


def test_texts_without_a_vector_are_in_no_cluster_and_counted(tmp_path: Path) -> None:
    lake = store(tmp_path, {TWO: prompts("card", "x" * 20_001)})
    report = run(lake, TWO, Config())
    assert report.facts["members"] == report.facts["without_vector"] == 1
    assert report.notes == ("texts without a vector, in no cluster: 1",)


def test_days_that_were_not_embedded_are_named(lake: Lake) -> None:
    rows = prompts("never embedded")
    lake.replace(
        "prompts", {"day": "2026-03-12"}, pa.Table.from_pylist(rows, schema=PROMPTS.schema)
    )
    forecast(lake, TWO, Config())
    report = run(lake, TWO, Config())
    assert report.notes[-1] == ("not embedded under this encoder: 2026-03-12; run `embed` for them")


def test_a_lake_without_demand_has_no_clusters(tmp_path: Path) -> None:
    report = run(store(tmp_path, {TWO: []}), TWO, Config())
    assert (report.rows_in, report.rows_out) == (0, 0)


def test_stages_that_did_not_run_are_named(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    with pytest.raises(InputDataError, match="run `distil`"):
        run(lake, TWO, Config())
    lake.replace(
        "prompts", {"day": TWO}, pa.Table.from_pylist(prompts(*RAIN), schema=PROMPTS.schema)
    )
    with pytest.raises(InputDataError, match="run `forecast`"):
        run(lake, TWO, Config())
    forecast(lake, TWO, Config())
    with pytest.raises(InputDataError, match="run `embed`"):
        run(lake, TWO, Config())


@pytest.mark.realdata
def test_clusters_of_real_questions_gather_intents(tmp_path: Path, real_data: Path) -> None:
    with (real_data / "banking77" / "test.csv").open(encoding="utf-8", newline="") as file:
        intents = {
            KEYS.text_digest(r["text"]): (r["category"], r["text"]) for r in csv.DictReader(file)
        }
    lake = store(tmp_path, {TWO: prompts(*(text for _, text in intents.values()))})
    config = Config.model_validate({"cluster": {"per_tenant": 77}})
    run(lake, TWO, config)
    groups: dict[str, Counter[str]] = {}
    for row in lake.read("members", {"day": TWO}).to_pylist():
        groups.setdefault(row["cluster_id"], Counter())[intents[row["text_digest"]][0]] += 1
    # Of 77 intents with 40 questions each, a random grouping would put 1 in 77 with its like.
    gathered = sum(max(group.values()) for group in groups.values())
    assert gathered / len(intents) > 0.4
