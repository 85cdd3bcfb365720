"""Measures, on the real data sets, the figures that `samples.parameters` freezes.

Run `python -m samples.measure` with WARMUP_DATA naming the folder, or with the folder of a written
log as argument for the skew of that log. It prints one JSON object; `samples/README.md` holds the
printed figures and says what each is used for.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from samples.popularity import Walk, zipf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

CLIENTS = (142, 34, 21, 100, 56)
"""ServeGen clients taken as tenants: the largest ones with a profile that repeats from day to day
(142, 21, 100, 56) or that is flat like a machine's (34)."""

WEEK_FROM_TUESDAY = 1
"""Weekday of the trace's first day: its two-day trough is read as the weekend."""


def servegen(path: Path) -> dict[str, Any]:
    """Measure tenant shares, daily and weekly shape and noise on the ServeGen windows.

    Args:
        path: the gzipped table `category, model, client, t_sec, rate, requests`, 10-minute windows.
    """
    windows: dict[int, Array] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.reader(file, delimiter="\t"):
            series = windows.setdefault(int(row[2]), np.zeros(14 * 144))
            series[int(row[3]) // 600] += float(row[5])
    week = _week(np.array(list(windows.values())))
    volume, profile, day_noise, window_noise, burst = [], [], [], [], []
    for client in CLIENTS:
        grid = windows[client].reshape(14, 24, 6)
        hours, days = grid.sum(2), grid.sum((1, 2))
        volume.append(float(np.median(days)))
        profile.append((hours / days[:, None]).mean(0) * 24)
        relative = days / np.median(days) / np.tile(np.roll(week, -WEEK_FROM_TUESDAY), 2)
        day_noise.append(float(np.log(relative).std()))
        busy = hours > 30
        inner = grid / np.maximum(hours[:, :, None] / 6, 1)
        window_noise.append(float(inner[busy].std()))
        expected = days[:, None] * profile[-1] / 24
        burst.append(float(np.percentile(hours / expected, 99.5)))
    return {
        "share": _rounded(np.array(volume) / sum(volume), 3),
        "hour_profile": [_rounded(p, 2) for p in profile],
        "weekday_from_monday": _rounded(week, 2),
        "day_noise_log_sd_median": round(float(np.median(day_noise)), 2),
        "window_noise_cv_median": round(float(np.median(window_noise)), 2),
        "burst_hour_ratio_p99.5_median": round(float(np.median(burst)), 2),
    }


def _week(windows: Array) -> Array:
    """Return the weekday factors, Monday first: the median client active on every day."""
    days = windows.reshape(len(windows), 14, 144).sum(2)
    days = days[np.argsort(-days.sum(1))[:100]]
    active = days[(days > 0.05 * days.mean(1, keepdims=True)).all(1)]
    factors = active / active.mean(1, keepdims=True)
    folded: Array = np.median(np.concatenate([factors[:, :7], factors[:, 7:]]), axis=0)
    return np.roll(folded / folded.mean(), WEEK_FROM_TUESDAY)


def berlin(path: Path) -> dict[str, Any]:
    """Measure skew, drift and novelty of the monthly search terms, counted in visits.

    Visits, not impressions, because one visitor who turns pages is not several who ask the same.
    Drift is read from pairs: how much rarer are two visits with the same term when they are k
    months apart than within one month.
    """
    counts = _monthly(path)
    total = counts.sum(0)
    pairs = (counts * (counts - 1)).sum(0) / (total * (total - 1))
    months = counts.shape[1]
    apart = [
        float(
            np.mean(
                [
                    (counts[:, m] * counts[:, m + k]).sum()
                    / (total[m] * total[m + k])
                    / np.sqrt(pairs[m] * pairs[m + k])
                    for m in range(months - k)
                ]
            )
        )
        for k in range(1, 19)
    ]
    seen = {
        "visits": float(total.mean()),
        "distinct": float((counts > 0).sum(0).mean()),
        "pair": float(pairs.mean()),
        "top10": _top(counts, 10),
        "top100": _top(counts, 100),
        "once": float(((counts == 1).sum(0) / (counts > 0).sum(0)).mean()),
    }
    new = [
        float((counts[:, :m].sum(1) == 0)[np.argsort(-counts[:, m], kind="stable")[:100]].mean())
        for m in range(12, months)
    ]
    drift = {days: _fit_drift(apart, days) for days in (1, 2, 3, 5, 7, 10, 14, 20, 30, 46)}
    return {
        "month": {k: round(v, 4) for k, v in seen.items()},
        "pair_ratio_by_months_apart": _rounded(apart, 3),
        "drift_by_days": drift,
        "new_in_top100_a_month": round(float(np.mean(new)), 3),
        "zipf_fit": _fit_zipf(seen, fast=drift[7]["fast"], days=7.0),
    }


def _monthly(path: Path) -> Array:
    """Return visits by folded term and month."""
    cells: Counter[tuple[str, str]] = Counter()
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            cells[row["term"].casefold(), row["month"]] += int(row["visits"])
    terms = {t: i for i, t in enumerate(sorted({t for t, _ in cells}))}
    months = {m: i for i, m in enumerate(sorted({m for _, m in cells}))}
    out = np.zeros((len(terms), len(months)))
    for (term, month), n in cells.items():
        out[terms[term], months[month]] = n
    return out


def _fit_drift(apart: list[float], days: float) -> dict[str, float]:
    """Fit the log pair ratio: a part that forgets in `days`, and a steady loss a year."""
    from scipy.optimize import least_squares

    offset = np.arange(-30.0, 31.0)
    weight = (31 - np.abs(offset)) / 31.0**2

    def log_ratio(logs: Array) -> Array:
        fast, slow = np.exp(logs)

        def met(distance: Array) -> float:
            d = np.abs(distance)
            log = -fast * (1 - np.exp(-d / days)) - slow * d / 365
            return float((np.exp(log) * weight).sum())

        base = met(offset)
        return np.log([met(offset + 30.4 * k) / base for k in range(1, len(apart) + 1)])

    fit = least_squares(lambda p: log_ratio(p) - np.log(apart), np.log([0.6, 0.5]))
    fast, slow = np.exp(fit.x)
    rmse = float(np.sqrt(np.mean(fit.fun**2)))
    return {"rmse": round(rmse, 4), "fast": round(fast, 3), "per_year": round(slow, 3)}


def _fit_zipf(seen: dict[str, float], fast: float, days: float) -> list[dict[str, float]]:
    """Simulate months of drifting Zipf popularity; return the parameter pairs, best fit first."""
    names = ("pair", "distinct", "top10", "top100", "once")
    goal = np.log([seen[n] for n in names])
    out = []
    for exponent in (0.7, 0.75, 0.8, 0.85, 0.9):
        for size in (3000, 6000, 12000, 25000):
            kept = persistence(exponent, size, fast)
            rng = np.random.default_rng(7)
            got = np.mean(
                [_month(exponent, size, kept, days, int(seen["visits"]), rng) for _ in range(8)],
                axis=0,
            )
            loss = float(((np.log(got) - goal) ** 2).sum())
            out.append(
                {"exponent": exponent, "size": size, "kept": round(kept, 3), "loss": round(loss, 3)}
            )
    return sorted(out, key=lambda row: row["loss"])


def persistence(exponent: float, size: int, fast: float) -> float:
    """Return the share of rank-score variance that stays, so that drift costs exp(-fast) pairs."""
    weights = zipf(exponent, size)
    rng = np.random.default_rng(1)
    stays, moves = rng.standard_normal((2, 24, size))

    def pairs(kept: float) -> float:
        later = kept * stays + np.sqrt(1 - kept**2) * moves
        met = [
            weights[np.argsort(np.argsort(-a))] @ weights[np.argsort(np.argsort(-b))]
            for a, b in zip(stays, later, strict=True)
        ]
        return float(np.mean(met) / (weights @ weights))

    low, high = 0.5, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if pairs(middle) < np.exp(-fast) else (low, middle)
    return (low + high) / 2


def _month(
    exponent: float, size: int, kept: float, days: float, visits: int, rng: np.random.Generator
) -> Array:
    walk = Walk(rng.standard_normal(size), kept, float(np.exp(-1 / days)), rng)
    weights, counts = zipf(exponent, size), np.zeros(size)
    for _ in range(30):
        ranked = np.empty(size)
        ranked[np.argsort(-walk.score)] = weights
        counts += rng.multinomial(visits // 30, ranked)
        walk.step()
    return _skew(counts)


def _skew(counts: Array) -> Array:
    """Return pair probability, distinct, top-10 and top-100 share, share of terms seen once."""
    n, top = counts.sum(), np.sort(counts)[::-1]
    pair = (counts * (counts - 1)).sum() / (n * (n - 1))
    once = (counts == 1).sum() / (counts > 0).sum()
    return np.array([pair, (counts > 0).sum(), top[:10].sum() / n, top[:100].sum() / n, once])


def banking77(path: Path) -> dict[str, Any]:
    """Measure the skew of the intents and how people write: case, full stops, greetings, spaces."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(r["text"].strip(), r["category"]) for r in csv.DictReader(file)]
    counts = np.sort(np.array(list(Counter(c for _, c in rows).values())))[::-1]
    ranks = np.log(np.arange(1, len(counts) + 1))

    def share(test: Iterable[bool]) -> float:
        return round(float(np.mean(list(test))), 3)

    texts = [t for t, _ in rows]
    return {
        "intent_exponent": round(float(-np.polyfit(ranks, np.log(counts), 1)[0]), 2),
        "lower_start": share(t[0].islower() for t in texts),
        "no_final_mark": share(t[-1] not in ".?!" for t in texts),
        "double_space": share("  " in t for t in texts),
        "greeting": share(t.lower().startswith(("hi", "hello", "hey", "please")) for t in texts),
    }


def written(folder: Path, visits: int = 1041) -> dict[str, list[float]]:
    """Measure on a written log what `berlin` measures: skew of as many texts as a month's visits.

    Suggested questions are left out: the search terms were all typed.

    Args:
        folder: where a log was written; single-turn texts, case folded, a tenant at a time.
        visits: texts drawn a tenant, twenty times.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    suggested = {
        tenant: {text.casefold() for text in texts}
        for tenant, texts in manifest["suggested"].items()
    }
    asked: dict[str, list[str]] = {}
    for path in sorted(folder.glob("requests-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                if not row.get("session_id") or row["messages"]:
                    continue
                text = row["prompt"].casefold()
                if text not in suggested.get(row["tenant"], ()):
                    asked.setdefault(row["tenant"], []).append(text)
    rng = np.random.default_rng(7)
    out = {}
    for tenant, found in sorted(asked.items()):
        drawn = [rng.choice(len(found), visits, replace=False) for _ in range(20)]
        counts = [np.array(list(Counter(found[i] for i in d).values()), float) for d in drawn]
        out[tenant] = _rounded(np.mean([_skew(c) for c in counts], axis=0), 4)
    return out


def _top(counts: Array, n: int) -> float:
    return float((np.sort(counts, axis=0)[::-1][:n].sum(0) / counts.sum(0)).mean())


def _rounded(values: Iterable[float], digits: int) -> list[float]:
    return [round(float(v), digits) for v in values]


def main() -> None:
    """Print every measured figure as one JSON object."""
    if len(sys.argv) > 1:
        print(json.dumps(written(Path(sys.argv[1])), indent=1))
        return
    folder = Path(os.environ["WARMUP_DATA"])
    figures = {
        "servegen": servegen(folder / "servegen" / "m-large_windows.tsv.gz"),
        "berlin_search": berlin(folder / "berlin_search" / "searchterms_2019-02_2020-12.tsv"),
        "banking77": banking77(folder / "banking77" / "train.csv"),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
