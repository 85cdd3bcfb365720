"""Compares cache policies on a real block trace and on the sample log of several seeds.

    python -m bench.policies

Makes the lakes of the sample logs in --lakes where they are not there yet, and writes
bench/reports/policies.md. The block trace is read from the folder that WARMUP_DATA names.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from bench.sample_lake import sample_lake
from samples import parameters
from warmup_lib.forecast.backtest import POLICIES, Backtest, backtest
from warmup_lib.forecast.trace import Trace
from warmup_lib.forecast.trace_file import read_trace
from warmup_lib.forecast.trace_lake import lake_trace

REPORT = Path(__file__).parent / "reports" / "policies.md"
SEEDS = (parameters.SEED, 1, 2, 3, 4, 5)
SAMPLE = (100, 300, 500, 1000)
BLOCKS = (1000, 10_000, 50_000)
PLAIN = ("lru", "lfu", "static_last")


def measured(lakes: Path, data: Path) -> Iterator[tuple[str, Backtest, float]]:
    """Yield each trace's name with its backtest, and the seconds that took."""
    blocks = read_trace(data / "mooncake" / "conversation_trace.jsonl.gz", ZoneInfo("UTC"))
    for capacity in BLOCKS:
        yield "Mooncake conversation", *_timed(blocks, capacity, timedelta(minutes=10))
    for seed in SEEDS:
        lake = sample_lake(lakes, seed)
        trace = lake_trace(lake, lake.days("requests"), "responses")
        for capacity in SAMPLE:
            yield f"sample log, seed {seed}", *_timed(trace, capacity, timedelta(days=1))


def _timed(trace: Trace, capacity: int, period: timedelta) -> tuple[Backtest, float]:
    begun = time.perf_counter()
    done = backtest(trace, capacity, period)
    return done, time.perf_counter() - begun


def row(name: str, done: Backtest, seconds: float) -> str:
    """Return a line of the table."""
    hit = {policy: float(done.hits[policy].mean()) for policy in POLICIES}
    best = max(hit[policy] for policy in PLAIN)
    closed = (hit["ours"] - best) / (hit["static_hindsight"] - best)
    cells = [f"**{100 * v:.2f}**" if p == "ours" else f"{100 * v:.2f}" for p, v in hit.items()]
    coming = done.facts()["plan"]
    chosen = f"{coming['reserve']:.0%} by {coming['estimator'] or coming['natural']}"
    ahead = f"{100 * (hit['ours'] - best):+.2f}"
    followed = 100 * float(done.field.gains.sum(axis=1).max()) / done.trace.accesses
    return (
        f"| {name} | {done.capacity:,} | {' | '.join(cells)} | {ahead} | {closed:.0%} "
        f"| {followed:.2f} | {chosen} | {seconds:.1f} |"
    )


def main() -> None:
    """Write the report."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--lakes", type=Path, default=Path(".demo/lakes"))
    lakes = arguments.parse_args().lakes
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    columns = [
        *POLICIES,
        "ours ahead by",
        "of the gap closed",
        "best expert",
        "reserve at the end",
        "s",
    ]
    lines = [
        "# Cache policies",
        "",
        f"Made by `python -m bench.policies`. Machine: {platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}. "
        f"Commit {commit}.",
        "",
        "Hits, % of all accesses, from an empty cache on. Periods: 10 minutes for the blocks (the "
        "trace is 59 minutes long), a day for the sample log (answers, exact identity, 14 days). "
        "`ours` is ahead of the best of lru, lfu and static_last by so many points; the gap is "
        "that from the best of them to static_hindsight, which no cache can reach: it knows each "
        "period before it begins. Best expert: what following the best one throughout would have "
        "hit. Blocks: kvcache-ai/Mooncake, FAST25 release, Apache-2.0.",
        "",
        f"| trace | capacity | {' | '.join(columns)} |",
        "|---" * (2 + len(columns)) + "|",
    ]
    for name, done, seconds in measured(lakes, Path(os.environ["WARMUP_DATA"])):
        lines.append(row(name, done, seconds))
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
