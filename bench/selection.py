"""Measures the choice under budgets against the exact optimum, and how long a million rows take.

Writes bench/reports/selection.md. Usage: `python -m bench.selection`.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.encoder import machine, table

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.plan.instances import FLOORS, instance, optimum
from warmup_lib.plan.packing import pack
from warmup_lib.plan.problem import NO_CAP, Groups, Problem

REPORT = Path(__file__).parent / "reports" / "selection.md"
INSTANCES = 50
MARGINS = (0, 100, 300, 2000)
MILLION = 1_000_000


def against_optimum() -> Iterator[list[object]]:
    """Yield a row a margin: how near the best choice comes on random instances."""
    draw = np.random.default_rng(1)
    problems = [
        instance(seed, int(draw.integers(100, 2001)), floors=FLOORS[seed % len(FLOORS)])
        for seed in range(INSTANCES)
    ]
    best = list(map(optimum, problems))
    for margin in MARGINS:
        begun = time.process_time()
        chosen = [pack(problem, exact=margin) for problem in problems]
        seconds = (time.process_time() - begun) / INSTANCES
        kept = [
            (one, value)
            for one, (short, value) in zip(chosen, best, strict=True)
            if one.short == short
        ]
        for problem, one, (short, _) in zip(problems, chosen, best, strict=True):
            assert problem.allowed(one.rows)
            assert one.short >= short
        assert all(one.value <= value <= one.bound for one, value in kept)
        shares = [one.value / value for one, value in kept]
        gaps = [one.gap for one in chosen]
        yield [
            margin,
            len(kept),
            sum(one.short for one in chosen) - sum(short for short, _ in best),
            f"{np.mean(shares):.5f}",
            f"{min(shares):.5f}",
            sum(share >= 0.99 for share in shares),
            f"{np.mean(gaps):.5f}",
            f"{max(gaps):.5f}",
            f"{seconds:.2f}",
        ]


def trees(count: int) -> Problem:
    """Heads in trees, some under adapters; 100 tenants with floors, half of them capped."""
    return instance(7, count, tenants=100)


def trees_beyond(count: int) -> Problem:
    """The same, with floors that there is no room for."""
    return instance(7, count, tenants=100, floors=FLOORS[-1])


def alike(count: int) -> Problem:
    """Items of one size and of six values, of eight layers and 50 tenants with floors."""
    draw = np.random.default_rng(3)
    cost = np.stack([np.full(count, 2500), np.full(count, 3)])
    layers = Groups(draw.integers(0, 8, count), np.zeros(8, int), np.full(8, count // 20))
    floors = Groups(draw.integers(0, 50, count), np.full(50, count // 500), np.full(50, NO_CAP))
    value = draw.integers(0, 6, count) * 1_000_000
    limit = np.array([count * 2500 // 3, count])
    return Problem(value, cost, limit, np.full(count, -1), (layers, floors))


def clusters(count: int) -> Problem:
    """Items of many sizes, of eight layers and of 5,000 clusters with caps."""
    draw = np.random.default_rng(4)
    cost = np.stack([draw.integers(500, 9000, count), draw.integers(1, 30, count)])
    layers = Groups(draw.integers(0, 8, count), np.zeros(8, int), np.full(8, count // 8))
    of = (draw.pareto(1, count) * 10).astype(int) % 5000
    caps = Groups(of, np.zeros(5000, int), np.full(5000, max(2, count // 500)))
    value = (draw.pareto(1.1, count) * 1e5).astype(int)
    limit = np.array([count * 800, count * 5])
    return Problem(value, cost, limit, np.full(count, -1), (layers, caps))


KINDS: dict[str, Callable[[int], Problem]] = {
    "trees of heads, adapters, floors": trees,
    "the same, floors beyond the budgets": trees_beyond,
    "alike, floors": alike,
    "clusters with caps": clusters,
}


def large(kind: str, count: int) -> list[object]:
    """Return the row of one large problem, measured in this process."""
    problem = KINDS[kind](count)
    begun, cpu = time.perf_counter(), time.process_time()
    chosen = pack(problem)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    assert problem.allowed(chosen.rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        kind,
        f"{count:,}",
        f"{int(chosen.rows.sum()):,}",
        f"{seconds:.1f}",
        f"{cpu:.1f}",
        f"{peak:.2f}",
        f"{100 * chosen.gap:.4f} %",
        chosen.short,
    ]


def scale() -> Iterator[list[object]]:
    """Yield a row a kind and size, each measured in a process of its own."""
    for kind in KINDS:
        for count in (100_000, MILLION):
            print(f"{kind}, {count:,}", file=sys.stderr, flush=True)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                yield pool.apply(large, (kind, count))


def main() -> None:
    """Write the report."""
    rows = list(against_optimum())
    head = ["decided exactly at the end", f"of {INSTANCES} that lack as few to floors"]
    head += ["rows more that all lack", "mean share of the optimum of these", "least"]
    head += [f"of {INSTANCES} at 99 % or more", "mean gap reported", "largest", "CPU s each"]
    parts = [
        "# Choosing under budgets",
        "Made by `bench/selection.py` for docs/adr/0009-budgets.md.",
        machine(),
        "## Against the exact optimum",
        f"{INSTANCES} random instances of 100 to 2,000 candidates: trees of heads that share "
        "stems, some under adapters that take a slot, three other budgets, six tenants with "
        "floors, half of them capped. The floors are at most "
        f"{', '.join(f'{100 * one:.0f}' for one in FLOORS)} % of a tenant's candidates, a fifth of "
        "the instances each: from hardly any to more than there is room for. The optimum lacks as "
        "few rows to the floors as any choice, and is worth the most of those: HiGHS's, through "
        "`scipy.optimize.milp`, by a program of its own. "
        "*Decided exactly at the end*: so many rows whose choice is the least clear; 0 is greedy "
        "alone, 2,000 what a plan does. No choice breaks a budget or cap; no optimum that lacks "
        "as many rows is above the bound that the choice reports.",
        table(head, rows),
        "## A million candidates",
        "Time of the choosing alone; peak memory of the whole process.",
        table(
            ["kind", "candidates", "chosen", "s", "CPU s", "peak GiB", "gap to the bound", "short"],
            list(scale()),
        ),
    ]
    REPORT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
