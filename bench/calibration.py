"""Scores the forecasts of several nights against the day after each: are the intervals right?

    python -m bench.calibration

Makes the lake of the sample log in --lakes where it is not there yet, plans after each of the last
days that has a day after it, and writes bench/reports/calibration.md and calibration.png. Hits are
those that look-ups by the product's own rules give, without a Redis.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.encoder import machine, table
from bench.sample_lake import sample_lake
from samples import parameters
from warmup_lib import pipeline
from warmup_lib.cli import scoring
from warmup_lib.config import Config
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, PlanItem
from warmup_lib.layers.registry import LAYERS
from warmup_lib.plan.attribution import by_nearest
from warmup_lib.plan.offer import of_tier
from warmup_lib.plan.points import lay_out
from warmup_lib.plan.selection import served_points
from warmup_lib.tables import MICRO
from warmup_lib.verify.baselines import Coverage
from warmup_lib.verify.calibration import Scored, facts, scored
from warmup_lib.verify.vectors import WindowVectors
from warmup_lib.verify.window import from_lake

REPORTS = Path(__file__).parent / "reports"
NIGHTS = 5
NAMES = ("embeddings", "responses")


def hits_of(lake: Lake, layer: Layer, items: pa.Table, context: Context, day: str) -> list[int]:
    """Return how many requests of a day each item would have served."""
    vectors = LakeVectors(lake, context.vectors.encoder)
    rows = from_lake(lake, day, "").rows
    asked = Coverage(rows, layer, context, WindowVectors(vectors, _known)).demand.prompts
    if layer.match == "exact":
        names = ["tenant", "text_digest", "heat_micro"]
        found: dict[tuple[str, str], int] = {}
        for row in asked.select(names).to_pylist():
            key = (row["tenant"], row["text_digest"])
            found[key] = found.get(key, 0) + row["heat_micro"]
        keys = zip(items["tenant"].to_pylist(), items["key_digest"].to_pylist(), strict=True)
        return [found.get(key, 0) // MICRO for key in keys]
    asked = asked.append_column("near_of", pa.nulls(asked.num_rows, pa.string()))
    points = lay_out(asked, items, items)
    held = points.holding(items)
    threshold = context.config.encoder.threshold
    chosen = np.flatnonzero(held)
    nearest = by_nearest(points, vectors, chosen, served_points(points, vectors, threshold, held))
    heat = np.zeros(items.num_rows, np.int64)
    served = nearest >= 0
    np.add.at(heat, points.candidate[chosen][nearest[served]], points.heat[served])
    return [int(micro) // MICRO for micro in heat]


def _known(texts: Sequence[str]) -> Any:
    raise AssertionError(f"{len(texts)} texts of the day have no vector")


def night(lake: Lake, config: Config, day: str, after: str) -> dict[str, Scored]:
    """Plan after a day, and score every item by the next one."""
    report = pipeline.plan(config, day, force=True, layers=list(NAMES))
    plan = report.facts["plan_id"]
    rows = lake.read("plan", {"plan_id": plan})
    encoder = rows["encoder"].drop_null()[0].as_py()
    context = Context(plan, config, pipeline.open_keys(config), LakeVectors(lake, encoder))
    found = {}
    for name in NAMES:
        ours = of_tier(rows.filter(pc.equal(rows["layer"], name)), None)
        items = PlanItem.rows(ours)
        hits = hits_of(lake, LAYERS[name], ours, context, after)
        served = [
            {"item_id": item.item_id, "target": ""}
            for item, count in zip(items, hits, strict=True)
            for _ in range(count)
        ]
        found[name] = scored(items, served)
    return found


def together(parts: Sequence[Scored]) -> Scored:
    """Return the items of several nights as one."""
    names = ("expected", "variance", "low", "high", "hits")
    return Scored(*[np.concatenate([getattr(part, name) for part in parts]) for name in names])


def _hot(hot: dict[str, Any]) -> list[object]:
    return [hot["items"], "-" if hot["inside"] is None else f"{hot['inside']:.1%}"]


def main() -> None:
    """Score the nights, and write the report and its picture."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--lakes", type=Path, default=Path(".demo/lakes"))
    folder = arguments.parse_args().lakes.absolute()
    lake = sample_lake(folder, parameters.SEED)
    target = {"kind": "redis", "name": "none", "url": "redis://127.0.0.1:1/0"}
    lake_at = str(folder / f"lake-{parameters.SEED}")
    config = Config.model_validate({"lake": lake_at, "targets": [target]})
    days = lake.days("requests")
    for day in days:
        if lake.manifest("clusters", {"day": day}) is None:
            pipeline.build_day(config, day)
    nights = list(zip(days[-NIGHTS - 1 :], days[-NIGHTS:], strict=False))
    scores = [night(lake, config, day, after) for day, after in nights]
    whole = {name: facts(together([score[name] for score in scores])) for name in NAMES}
    lines = [
        [after, name, *(one[key] for key in ("items", "expected", "realised")), *_hot(one["hot"])]
        for (_, after), score in zip(nights, scores, strict=True)
        for name, one in ((name, facts(score[name])) for name in NAMES)
    ]
    head = ["day", "layer", "items", "expected hits", "hits", "expected 5 or more", "in interval"]
    bins = [
        [name, b["from"], b["items"], b["expected"], b["realised"], f"{b['inside']:.1%}"]
        for name in NAMES
        for b in whole[name]["by_expected"]
    ]
    pit = [[name, *whole[name]["pit"]] for name in NAMES]
    text = f"""# Calibration of the forecasts

Made by `python -m bench.calibration`. {machine()}

The composed sample log. After each of {NIGHTS} days a plan is made from the days up to it, and its
items are scored by the requests of the day after, which it does not know. Intervals are those of
80 %.

{table(head, lines)}

All nights together, by what was expected:

{table(["layer", "expected from", "items", "expected", "hits", "in interval"], bins)}

Randomised PIT, tenths from 0 to 1 (even where forecasts scatter as claimed):

{table(["layer", *[f"{n / 10:.1f}" for n in range(10)]], pit)}

![Expected hits and hits, and the PIT](calibration.png)
"""
    (REPORTS / "calibration.md").write_text(text, encoding="utf-8")
    title = {"plan_id": f"{NIGHTS} nights", "window": f"{nights[0][1]} to {nights[-1][1]}"}
    scoring.draw(REPORTS / "calibration.png", {**title, "calibration": whole})


if __name__ == "__main__":
    main()
