"""The command line: `python -m bench.effect`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.effect import parts
from bench.effect.bed import Bed
from bench.effect.kept import Kept
from bench.effect.rates import rates
from bench.effect.report import write
from bench.effect.setting import QUICK, Extent, Setting

REPORTS = Path(__file__).parents[1] / "reports"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo/effect"),
    show_default=True,
    help="Log, lake, stack and what was measured; a broken run goes on from there.",
)
@click.option("--quick", is_flag=True, help="A few minutes; the report goes to --out too.")
def main(out: Path, quick: bool) -> None:
    """Measure the effect of warming and write bench/reports/effect.md and effect.png."""
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    extent = QUICK if quick else Extent()
    commit = ["git", "rev-parse", "--short", "HEAD"]
    kept = Kept(out / "measured.json", subprocess.check_output(commit, text=True).strip())
    bed = Bed(out, extent.scale)
    try:
        measure(kept, bed, extent)
    finally:
        bed.down()
    folder = out if quick else REPORTS
    write(kept.parts, extent, folder)
    print(f"wrote {folder / 'effect.md'}")


def measure(kept: Kept, bed: Bed, extent: Extent) -> None:
    """Measure the parts that are not kept yet.

    Args:
        kept: Takes them.
        bed: What is measured.
        extent: How much.
    """

    def part(name: str, measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        known = name in kept.parts
        found = kept.part(name, measured)
        print(f"{name}: {'kept' if known else found['seconds']}", file=sys.stderr, flush=True)
        return found

    run = part("run", lambda: {"word": uuid.uuid4().hex[:8]})["word"]
    plan = part("plan", partial(_prepare, bed))
    asks, unserved = bed.asks(plan["day"])
    size = part("size", partial(_sizes, bed, asks, unserved))
    setting = Setting(bed, extent, run, plan["day"], asks, size["tokens"], size["block"])
    for number, first in enumerate(parts.rounds(setting)):
        part(f"round {number}", partial(parts.first_requests, setting, number, first))
    part("cold rates", partial(rates, setting, "cold"))
    part("cold answers", partial(parts.answers_cold, setting))
    part("warm answers", partial(parts.answers_and_decay, setting))
    part("warm rates", partial(rates, setting, "warm"))


def _prepare(bed: Bed) -> dict[str, Any]:
    bed.ensure()
    return bed.prepare()


def _sizes(bed: Bed, asks: list[Any], unserved: int) -> dict[str, Any]:
    bed.ensure()
    tokens, block, cache = asyncio.run(bed.sizes(asks))
    return {
        "tokens": tokens,
        "block": block,
        "cache": cache,
        "requests": len(asks),
        "unserved": unserved,
    }


if __name__ == "__main__":
    main()
