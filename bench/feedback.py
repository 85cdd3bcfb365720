"""What a plan gains by what the nights before it have shown: hits with it and without.

    python -m bench.feedback

Makes the lake of the sample log in --lakes where it is not there yet, and plans twice after each of
the last days that has a day after it: from the demand alone, and from what came of the plans before
it too. Writes bench/reports/feedback.md. Hits are those that look-ups by the product's own rules
give, without a Redis; every item counts as proven resident.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bench.calibration import hits_of
from bench.encoder import machine, table
from bench.sample_lake import sample_lake
from samples import parameters
from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context
from warmup_lib.layers.registry import LAYERS
from warmup_lib.plan.feedback import Unhit
from warmup_lib.plan.offer import of_tier
from warmup_lib.plan.realised import read_feedback
from warmup_lib.tables import HITS, MICRO, RESIDENCY

REPORTS = Path(__file__).parent / "reports"
NIGHTS = 8
NAMES = ("embeddings", "responses")
_EDGES = (0.0, 0.5, 1.0, 2.0, 5.0, float("inf"))


class Night(NamedTuple):
    """One plan and what came of it on the day after.

    Attributes:
        after: That day.
        items: The plan's main items.
        hits: By layer, of each item.
        unhit: What was never hit before, by item.
    """

    after: str
    items: dict[str, pa.Table]
    hits: dict[str, list[int]]
    unhit: dict[str, Unhit]

    def total(self, name: str) -> int:
        """Return the hits of a layer."""
        return sum(self.hits[name])

    def expected(self, name: str) -> float:
        """Return the hits that were expected of it."""
        return float(pc.sum(self.items[name]["expected_micro"]).as_py()) / MICRO


def night(lake: Lake, config: Config, day: str, after: str) -> Night:
    """Plan after a day, and look its items up on the next one."""
    plan = pipeline.plan(config, day, force=True, layers=list(NAMES)).facts["plan_id"]
    rows = lake.read("plan", {"plan_id": plan})
    encoder = rows["encoder"].drop_null()[0].as_py()
    context = Context(plan, config, pipeline.open_keys(config), LakeVectors(lake, encoder))
    items = {name: of_tier(rows.filter(pc.equal(rows["layer"], name)), None) for name in NAMES}
    hits = {name: hits_of(lake, LAYERS[name], items[name], context, after) for name in NAMES}
    known = read_feedback(lake, lake.days("prompts")[0], day, encoder)
    return Night(after, items, hits, dict(known.unhit))


def show(lake: Lake, one: Night) -> None:
    """Write into the lake what verifying would have: what stood there, and what was hit."""
    plan = max(p["plan_id"] for p in lake.partitions("plan") if p["plan_id"] < one.after)
    stood, served = [], []
    for name, rows in one.items.items():
        for row, count in zip(rows.to_pylist(), one.hits[name], strict=True):
            place = {"item_id": row["item_id"], "layer": name, "tenant": row["tenant"]}
            stood.append(_row(RESIDENCY.schema, place | {"target": "redis", "resident": True}))
            if count:
                served.append(_row(HITS.schema, place | {"target": "redis", "hit": True}))
    residency = pa.Table.from_pylist(stood, schema=RESIDENCY.schema)
    lake.replace("residency", {"plan_id": plan}, residency)
    partition, meta = {"plan_id": plan, "window": one.after}, {"whole_day": True}
    rows = pa.Table.from_pylist(served, schema=HITS.schema)
    lake.replace("hits", partition, rows, meta | {"in_sample": False})


def _row(schema: pa.Schema, held: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(schema.names) | held


def run(folder: Path, nights: Sequence[tuple[str, str]], *, learning: bool) -> list[Night]:
    """Plan night after night in a copy of the lake; learning: show what came of each plan."""
    copy = folder / f"feedback-{learning}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / f"lake-{parameters.SEED}", copy)
    target = {"kind": "redis", "name": "none", "url": "redis://127.0.0.1:1/0"}
    config = Config.model_validate({"lake": str(copy), "targets": [target]})
    lake, made = Lake(str(copy)), []
    for table_name in ("plan", "left_out", "hits", "residency", "causes", "receipts"):
        for partition in lake.partitions(table_name):
            lake.drop(table_name, partition)
    for day, after in nights:
        made.append(night(lake, config, day, after))
        if learning:
            show(lake, made[-1])
    shutil.rmtree(copy)
    return made


def promised(without: Sequence[Night], learned: Sequence[Night]) -> list[list[object]]:
    """Return what became of the items that a night without the lesson planned once more.

    By own heat: items, hits promised, the hits that the lesson leaves of them, and hits.
    """
    found = [[0, 0.0, 0.0, 0] for _ in _EDGES[1:]]
    for plain, one in zip(without, learned, strict=True):
        for name in NAMES:
            rows = zip(plain.items[name].to_pylist(), plain.hits[name], strict=True)
            for row, hits in rows:
                lesson = one.unhit.get(row["item_id"])
                if lesson is None:
                    continue
                heat = row["heat_micro"]
                place = sum(heat / MICRO >= edge for edge in _EDGES[1:])
                cell = found[place]
                cell[0] += 1
                cell[1] += row["expected_micro"] / MICRO
                cell[2] += row["expected_micro"] / MICRO * (lesson.left(heat) / heat if heat else 1)
                cell[3] += hits
    return [
        [low, cell[0], f"{cell[1]:,.0f}", f"{cell[2]:,.0f}", cell[3]]
        for low, cell in zip(_EDGES, found, strict=False)
        if cell[0]
    ]


def main() -> None:
    """Plan the nights both ways, and write the report."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--lakes", type=Path, default=Path(".demo/lakes"))
    folder = arguments.parse_args().lakes.absolute()
    lake = sample_lake(folder, parameters.SEED)
    config = Config(lake=str(folder / f"lake-{parameters.SEED}"))
    days = lake.days("requests")
    for day in days:
        if lake.manifest("clusters", {"day": day}) is None:
            pipeline.build_day(config, day)
    nights = list(zip(days[-NIGHTS - 1 :], days[-NIGHTS:], strict=False))
    without, learned = (run(folder, nights, learning=learning) for learning in (False, True))
    lines = [
        [
            plain.after,
            name,
            f"{plain.expected(name):,.0f}",
            f"{plain.total(name):,}",
            f"{one.expected(name):,.0f}",
            f"{one.total(name):,}",
            f"{one.total(name) / plain.total(name) - 1:+.1%}",
        ]
        for plain, one in zip(without, learned, strict=True)
        for name in NAMES
    ]
    head = ["day", "layer", "expected", "hits", "expected, learning", "hits, learning", "gain"]
    left = ["own heat from", "items", "hits promised", "left of them", "hits"]
    text = f"""# What a plan gains by the nights before it

Made by `python -m bench.feedback`. {machine()}

The composed sample log. After each of {NIGHTS} days two plans of the same size are made, from the
demand alone and from what came of the plans before it too, and looked up on the day after, which
they do not know. The first three nights have nothing to learn from: an item counts for less after
three days without a hit (docs/adr/0020-feedback.md).

{table(head, lines)}

What a plan without it holds of such items, on all nights: what it promises of them, what the lesson
leaves of that, and what came.

{table(left, promised(without, learned))}
"""
    (REPORTS / "feedback.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
