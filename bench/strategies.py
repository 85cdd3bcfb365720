"""Measures the strategies `full` and `incremental` on the sample log and the embedded stack.

    python -m bench.strategies

writes bench/reports/strategies.md. What a broken-off run has measured is kept, and the next one
goes on from there.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.effect.bed import Bed
from bench.effect.kept import Kept
from bench.encoder import machine, table
from warmup_lib import pipeline
from warmup_lib.config import Config, ResponsesConfig

REPORTS = Path(__file__).parent / "reports"
STRATEGIES = ("full", "incremental")
GOALS = {"seconds": 0.21, "bytes": 0.28, "gain": 0.64}
"""What incremental may take of the time and memory of full, and has to keep of its P95 gain."""


class Night:
    """One night: a plan stands since the day before, and the next one is to be made and warmed.

    Args:
        bed: Log, lake and stack.
        config: The settings.
        files: The log's days, oldest first: the last one is the later traffic.
    """

    def __init__(self, bed: Bed, config: Config, files: list[Path]) -> None:
        self._bed = bed
        self._config = config
        self._files = files
        self._before, self._day, self.later = (
            file.name.removeprefix("requests-")[:10] for file in files[-3:]
        )

    def prepare(self) -> dict[str, Any]:
        """Plan after the day before, then take in the day, which both strategies need alike."""
        self._bed.ensure()  # a running stack names the adapters that it can load
        pipeline.ingest(self._config, self._files[:-2], "jsonl")
        pipeline.build_day(self._config, self._before)
        base = pipeline.plan(self._config, self._before)
        pipeline.ingest(self._config, self._files[-2:], "jsonl")
        built = pipeline.build_day(self._config, self._day)
        return {
            "base": base.facts["plan_id"],
            "base_items": base.facts["items"],
            "stages_s": {one.stage: round(one.seconds, 3) for one in built[-4:]},
        }

    def run(self, strategy: str, base: str) -> dict[str, Any]:
        """Start the stack anew, make the plan and warm it, and verify it on the later traffic.

        `full` finds everything cold. `incremental` finds what its base left: warmed just before.
        """
        self._bed.restart()
        if strategy == "incremental":
            _whole(pipeline.apply(self._config, base).facts)
        planned = pipeline.plan(self._config, self._day, strategy=strategy, force=True)
        begun = time.perf_counter()
        applied = pipeline.apply(self._config, planned.facts["plan_id"])
        applied_s = time.perf_counter() - begun
        _whole(applied.facts)
        verified = pipeline.verify(self._config, planned.facts["plan_id"], day=self.later)
        return {
            "plan_id": planned.facts["plan_id"],
            "items": planned.facts["items"],
            "plan_s": round(planned.seconds, 3),
            "apply_s": round(applied_s, 3),
            "layers": applied.facts["layers"],
            "completion": applied.facts["completion"],
            "hit_ratio": verified.facts["hit_ratio"],
            "gates": verified.facts["gates"],
        }


def _whole(applied: Mapping[str, Any]) -> None:
    if applied["unavailable"] or applied["window_over"]:
        raise RuntimeError(
            f"warming failed: {applied['unavailable'] or 'the window was too short'}"
        )


def settings(bed: Bed) -> Config:
    """Return the product's own settings, with the sample's documents."""
    layers = bed.config.layers.model_copy(update={"responses": ResponsesConfig()})
    return Config(lake=bed.config.lake, layers=layers)


def write(parts: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> None:
    """Write strategies.md.

    Args:
        parts: What was measured, by `prepare` and by strategy.
        found: What `warmup plan compare` says of the two plans.
        folder: Where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ratio = {
        "seconds": total(parts["incremental"]) / total(parts["full"]),
        "bytes": found["ratio"]["bytes"],
        "gain": found["ratio"]["gain"],
    }
    text = f"""# The strategies full and incremental

Made by `python -m bench.strategies`. {machine()}

The composed sample log's last night on one Redis and one embedded vLLM host, with the product's own
settings. A plan stands since the night before. `full` makes a plan of everything and warms it on a
stack that was started anew. `incremental` finds the stack as the plan before left it, warmed just
before, and adds what is needed to catch as much as a full plan. First tokens are those of
{found["plans"][0]["requests"]} requests of the next day, drawn for both alike, each sent cold
(under a fresh salt) and warm. The day itself is taken in by the same stages for both
({_stages(parts["prepare"])}), which is left out.

{_table(parts, found)}

**Incremental takes {ratio["seconds"]:.2f}x the time of full (goal: {GOALS["seconds"]} at most) and
{_said(ratio["bytes"])}x of its added memory (goal: {GOALS["bytes"]} at most), and keeps
{_said(ratio["gain"])}x of its P95 gain (goal: {GOALS["gain"]} at least).**

What was warmed, and how much of it was there before:

{_layers(parts)}

`warmup plan compare FULL INCREMENTAL` prints the same for plans of one's own, without the time of
planning.
"""
    (folder / "strategies.md").write_text(text, encoding="utf-8")


def total(part: Mapping[str, Any]) -> float:
    """Return the seconds of planning and applying."""
    return float(part["plan_s"] + part["apply_s"])


def _table(parts: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    rows = []
    for strategy, plan in zip(STRATEGIES, found["plans"], strict=True):
        part = parts[strategy]
        rows.append(
            [
                strategy,
                f"{plan['items']:,}",
                f"{part['plan_s']:.1f}",
                f"{part['apply_s']:.1f}",
                f"{total(part):.1f}",
                f"{plan['redis_bytes'] / 2**20:.2f}",
                f"{plan['host_bytes'] / 2**20:.1f} ({plan['host_tokens']:,} tokens)",
                f"{plan['cold_ms']:,.0f}",
                f"{plan['warm_ms']:,.0f}",
                f"-{plan['gain']:.1%}",
            ]
        )
    head = ["strategy", "items", "planning, s", "applying, s", "both, s", "Redis, MiB added"]
    head += ["host, MiB added", "P95 cold, ms", "P95 warm, ms", "P95"]
    return table(head, rows)


def _layers(parts: Mapping[str, Any]) -> str:
    rows = []
    for strategy in STRATEGIES:
        for layer, targets in parts[strategy]["completion"].items():
            for target, counts in targets.items():
                took = parts[strategy]["layers"].get(layer, {}).get(target, {})
                rows.append(
                    [
                        strategy,
                        layer,
                        f"{counts['planned']:,}",
                        f"{counts['done']:,}",
                        f"{counts['already']:,}",
                        f"{counts['skipped'] + counts['failed'] + counts['missing']:,}",
                        f"{took.get('seconds', 0.0):.1f}",
                    ]
                )
    head = ["strategy", "layer", "planned", "warmed", "already warm", "not warmed", "seconds"]
    return table(head, rows)


def _stages(prepared: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {took:.1f} s" for name, took in prepared["stages_s"].items())


def _said(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo/strategies"),
    show_default=True,
    help="Log, lake, stack and what was measured; a broken run goes on from there.",
)
@click.option("--scale", default=1.0, show_default=True, help="Size of the log.")
def main(out: Path, scale: float) -> None:
    """Measure, and write the report; that of a smaller log goes to --out."""
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    commit = ["git", "rev-parse", "--short", "HEAD"]
    kept = Kept(out / "measured.json", subprocess.check_output(commit, text=True).strip())
    bed = Bed(out, scale)
    config = settings(bed)
    night = Night(bed, config, sorted((out / "log").glob("requests-*.jsonl.gz")))
    try:
        base = kept.part("prepare", night.prepare)["base"]
        for strategy in STRATEGIES:
            part = kept.part(strategy, partial(night.run, strategy, base))
            print(f"{strategy}: {total(part):.1f} s", flush=True)
    finally:
        bed.down()
    found = pipeline.plan_compare(config, *(kept.parts[name]["plan_id"] for name in STRATEGIES))
    folder = REPORTS if scale == 1 else out
    write(kept.parts, found, folder)
    print(f"wrote {folder / 'strategies.md'}")


if __name__ == "__main__":
    main()
