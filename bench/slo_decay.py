"""Measures what is left of a plan 24 and 72 hours on, beside LRU and LFU, with its slowest tail.

    python -m bench.effect --out DIR
    python -m bench.slo_decay --measured DIR/measured.json --lakes LAKES

Heads of the composed sample log are the items. First-token times are those that bench.effect
measured on the embedded host, cold and warm, of long and short heads, with and without adapter.
Writes bench/reports/slo_decay.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
from scipy.sparse import csc_array

from bench.sample_lake import sample_lake
from samples import parameters
from warmup_lib.forecast.backtest import backtest
from warmup_lib.forecast.caches import Simulated, lfu, lru
from warmup_lib.forecast.estimators import family
from warmup_lib.forecast.rolling import Counts, choose
from warmup_lib.forecast.trace import Flags, Ints, Reals, Trace, trace_of
from warmup_lib.lake import Lake
from warmup_lib.tables import MICRO

REPORT = Path(__file__).parent / "reports" / "slo_decay.md"
LONG = 1200
SLO_MS = 500.0
CAPACITY = 48
PLANS = (9, 10, 11)
"""Days after which a plan is made: each has 72 hours of the log's 14 days after it."""

SEED = 20260302
_REQUESTS = """
SELECT
    epoch_us(ts) AS asked_at,
    CAST(day AS VARCHAR) AS day,
    tenant,
    head_digest,
    prompt_tokens,
    adapter IS NOT NULL AS adapted
FROM requests
WHERE
    head_digest IS NOT NULL
    AND NOT COALESCE(warmup, false)
    AND NOT COALESCE(health, false)
    AND NOT COALESCE(bypass, false)
ORDER BY ts, request_id
"""
Pools = Mapping[tuple[bool, bool, bool], Reals]


@dataclass(frozen=True)
class Log:
    """The requests for heads.

    Attributes:
        trace: Which head each is for, and when.
        day: Day of each request, from 0; shape (n,).
        days: ISO dates.
        tenant: Tenant of each head; shape (items,).
        tenants: Their names.
        kind: Of each head whether it is long, and whether an adapter is used with it mostly.
    """

    trace: Trace
    day: Ints
    days: Sequence[str]
    tenant: Ints
    tenants: Sequence[str]
    kind: Sequence[tuple[bool, bool]]


def pools_of(file: Path) -> Pools:
    """Return first-token times in ms by (warm, long, adapter), measured by bench.effect.

    Cold are first requests whose head the host had not half of; warm those whose head it had.
    """
    found: dict[tuple[bool, bool, bool], list[float]] = defaultdict(list)
    for name, part in json.loads(file.read_bytes()).items():
        if not name.startswith("round"):
            continue
        for arm in ("cold", "warm"):
            for row in part[arm]["samples"]:
                share = (row["cached_tokens"] or 0) / row["tokens"]
                if share >= 0.8 if arm == "warm" else share < 0.5:
                    kind = (arm == "warm", row["tokens"] >= LONG, row["adapter"] is not None)
                    found[kind].append(row["first_ms"])
    return {kind: np.sort(np.array(times)) for kind, times in found.items()}


def log_of(lake: Lake) -> Log:
    """Return the requests of a lake."""
    connection = lake.sql()
    try:
        rows = connection.sql(_REQUESTS).to_arrow_table()
    finally:
        connection.close()
    names, tenant = np.unique(np.array(rows["tenant"].to_pylist()), return_inverse=True)
    heads = np.array(rows["head_digest"].to_pylist())
    _, head = np.unique(np.char.add(names[tenant], heads), return_inverse=True)
    trace = trace_of(np.asarray(rows["asked_at"], np.int64), head.astype(np.int64))
    days, day = np.unique(np.array(rows["day"].to_pylist()), return_inverse=True)
    seen = np.bincount(trace.item)
    tokens = np.bincount(trace.item, np.asarray(rows["prompt_tokens"].fill_null(0))) / seen
    adapted = np.bincount(trace.item, np.asarray(rows["adapted"])) / seen
    of_item = np.zeros(trace.items, np.int64)
    of_item[trace.item] = tenant
    kinds = [(bool(t >= LONG), bool(a > 0.5)) for t, a in zip(tokens, adapted, strict=True)]
    return Log(trace, day.astype(np.int64), days.tolist(), of_item, names.tolist(), kinds)


def planned(log: Log, pools: Pools, until: int, capacity: int, press: bool) -> tuple[Ints, str]:
    """Return the heads that a plan made after `until` days holds, and how heat was weighed.

    The decay of each tenant's heat is chosen on the days before. Pressed, its rate may grow as
    first tokens exceed the SLO, and the heat of a head counts as many times as its cold first token
    takes longer than that.
    """
    known = log.day < until
    item, day = log.trace.item[known], log.day[known]
    counts = csc_array((np.ones(len(item)), (item, day)), shape=(log.trace.items, until))
    cold = np.array([np.mean(pools[False, *kind]) for kind in log.kind])
    pressure = {
        name: max(1.0, float(np.percentile(cold[item][log.tenant[item] == place], 95)) / SLO_MS)
        for place, name in enumerate(log.tenants)
    }
    history = Counts(log.days[:until], counts, log.tenant, log.tenants)
    won = choose(history, family(pressed=press), capacity, pressure)
    heat = np.zeros(log.trace.items)
    for place, name in enumerate(log.tenants):
        weights = won[name].estimator.weights(log.days[:until], pressure[name])
        mine = log.tenant == place
        heat[mine] = (counts @ (np.array(list(weights.values())) / MICRO))[mine]
    worth = heat * np.maximum(cold / SLO_MS, 1.0) if press else heat
    best = np.argsort(-worth, kind="stable")[:capacity]
    said = ", ".join(f"{name}: {one.estimator.name}" for name, one in won.items())
    return best[worth[best] > 0], said


def first_tokens(log: Log, pools: Pools, window: Flags, hits: Flags) -> Reals:
    """Return first-token times in ms of a window's requests, drawn from those measured.

    The same request draws the same quantile under every policy.
    """
    at = np.flatnonzero(window)
    points = np.random.default_rng(SEED).random(len(window))[at]
    found = np.zeros(len(at))
    for place, (i, hit) in enumerate(zip(at.tolist(), hits[at].tolist(), strict=True)):
        pool = pools[hit, *log.kind[log.trace.item[i]]]
        found[place] = pool[int(points[place] * len(pool))]
    return found


def policies(log: Log, pools: Pools, until: int, capacity: int) -> tuple[dict[str, Flags], str]:
    """Return each policy's hits after a plan made after `until` days, and how ours was made."""
    item = log.trace.item
    cut = int(np.searchsorted(log.day, until))
    last = np.full(log.trace.items, -1, np.int64)
    last[item[:cut]] = np.arange(cut)
    found: dict[str, Flags] = {}
    for name, simulate in (("LRU", lru), ("LFU", lfu)):
        done = simulate(item.tolist(), capacity)
        left = Simulated(done.hits, done.victims).held(last, cut)
        found[f"{name}, left alone"] = np.isin(item, left)
        found[f"{name}, running on"] = done.hits
    hits_only, _ = planned(log, pools, until, capacity, press=False)
    pressed, said = planned(log, pools, until, capacity, press=True)
    found["ours, by hits, left alone"] = np.isin(item, hits_only)
    found["ours, pressed, left alone"] = np.isin(item, pressed)
    run = backtest(log.trace, capacity, timedelta(days=1))
    found["ours, running on"] = run.hits["ours"]
    found["belady, running on"] = run.hits["belady"]
    return found, said


def table(log: Log, pools: Pools, capacity: int) -> list[str]:
    """Return the table's lines: means of all plans."""
    rows: dict[str, list[list[float]]] = defaultdict(list)
    said = []
    for until in PLANS:
        windows = [log.day == until, log.day == until + 2]
        found, how = policies(log, pools, until, capacity)
        said.append(f"- after {log.days[until - 1]}: {how}")
        for name, hits in found.items():
            times = [first_tokens(log, pools, window, hits) for window in windows]
            shares = [float(hits[window].mean()) for window in windows]
            rows[name].append([*shares, *(float(np.percentile(t, 99)) for t in times)])
        best = [
            np.sort(np.bincount(log.trace.item[window]))[-capacity:].sum() / window.sum()
            for window in windows
        ]
        rows["best set in hindsight"].append([*best, np.nan, np.nan])
    mean = {name: np.mean(values, axis=0) for name, values in rows.items()}
    lines = []
    for name, values in mean.items():
        base = mean["LFU, " + name.rsplit(", ", 1)[-1]] if ", " in name else None
        ahead = ["" if base is None else f"{100 * (values[k] - base[k]):+.1f}" for k in (0, 1)]
        lower = [
            "" if base is None else f"{100 * (values[k] / base[k] - 1):+.1f} %" for k in (2, 3)
        ]
        tail = ["" if np.isnan(values[k]) else f"{values[k]:,.0f}" for k in (2, 3)]
        lines.append(
            f"| {name} | {100 * values[0]:.1f} | {ahead[0]} | {100 * values[1]:.1f} | {ahead[1]} "
            f"| {tail[0]} | {lower[0]} | {tail[1]} | {lower[1]} |"
        )
    return [*lines, "", "How heat was weighed:", "", *said]


def main() -> None:
    """Write the report."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--measured", type=Path, default=Path(".demo/effect/measured.json"))
    arguments.add_argument("--lakes", type=Path, default=Path(".demo/lakes"))
    arguments.add_argument("--capacity", type=int, default=CAPACITY)
    given = arguments.parse_args()
    log, pools = log_of(sample_lake(given.lakes, parameters.SEED)), pools_of(given.measured)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    sizes = ", ".join(
        f"{'warm' if kind[0] else 'cold'} {'long' if kind[1] else 'short'}"
        f"{' with adapter' if kind[2] else ''} {len(times)} (P50 {np.median(times):,.0f} ms, "
        f"P95 {np.percentile(times, 95):,.0f} ms)"
        for kind, times in sorted(pools.items())
    )
    lines = [
        "# What is left of a plan after 24 and 72 hours",
        "",
        f"Made by `python -m bench.slo_decay`. Machine: {platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}. "
        f"Commit {commit}.",
        "",
        f"Heads of the composed sample log (samples/README.md), caches of {given.capacity} heads, "
        f"mean of {len(PLANS)} plans, each after another day. `24 h`: the requests of the first 24 "
        "hours after the plan; `72 h`: those of the third. *Left alone*: what the policy held when "
        "the plan was made, nothing taken in after; *running on*: the policy goes on. `ours, by "
        "hits`: the heads with most heat, whose decay is chosen on the days before. `ours, "
        "pressed`: the decay may be faster where first tokens exceed the SLO of "
        f"{SLO_MS:.0f} ms, and heat counts as many times as a head's cold first token takes longer "
        "than that. `ours, running on`: as `warmup backtest` chooses. belady knows the future. "
        "Compared is the LFU that is left alone, or runs on, as the row's policy.",
        "",
        f"First-token times were measured by bench.effect on the embedded host: {sizes}. Long: "
        f"from {LONG:,} tokens. Each request draws its time from those of its kind.",
        "",
        "| policy | hits 24 h, % | to LFU, points | hits 72 h, % | to LFU, points | P99 24 h, ms "
        "| to LFU | P99 72 h, ms | to LFU |",
        "|---|---|---|---|---|---|---|---|---|",
        *table(log, pools, given.capacity),
    ]
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
