"""Forecasts the Berlin search terms month by month and writes bench/reports/berlin.md.

Reads the terms from the folder that WARMUP_DATA names. Their impressions are counted by month, case
folded; a month is forecast from those before it alone.
"""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from pathlib import Path

import numpy as np

from bench.rolling import Origin, rolling
from warmup_lib.forecast.family import ALL, LAST

REPORT = Path(__file__).parent / "reports" / "berlin.md"
FIRST = "2019-08"
ROOMS = (100, 1000)
YEAR = {"year": 12}


def months_of(folder: Path) -> tuple[list[str], list[tuple[np.ndarray, np.ndarray]], int]:
    """Return the months, the terms and impressions of each, and the number of terms.

    Terms are numbered by the month in which they first come, then by name: which of equals is
    taken hangs on nothing that comes later.
    """
    counts: dict[str, dict[str, int]] = {}
    path = folder / "berlin_search" / "searchterms_2019-02_2020-12.tsv"
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            month = counts.setdefault(row["month"], {})
            term = row["term"].casefold()
            month[term] = month.get(term, 0) + int(row["impressions"])
    number: dict[str, int] = {}
    periods = []
    for month in sorted(counts):
        for term in sorted(counts[month]):
            number.setdefault(term, len(number))
        ids = np.array([number[term] for term in counts[month]], np.int64)
        periods.append((ids, np.array(list(counts[month].values()), np.int64)))
    return sorted(counts), periods, len(number)


def forecast(folder: Path) -> dict[int, list[tuple[str, Origin]]]:
    """Return, for each number of top terms, the months from `FIRST` on and their forecasts."""
    months, periods, terms = months_of(folder)
    return {
        room: [
            (months[one.period], one)
            for one in rolling(periods, terms, room, YEAR)
            if months[one.period] >= FIRST
        ]
        for room in ROOMS
    }


def means(rows: list[tuple[str, Origin]]) -> dict[str, float]:
    """Return the mean coverage of the plain rules, of ours and of hindsight."""
    return {
        "last month": float(np.mean([one.covered[LAST] for _, one in rows])),
        "all history": float(np.mean([one.covered[ALL] for _, one in rows])),
        "ours": float(np.mean([one.ours for _, one in rows])),
        "hindsight": float(np.mean([one.hindsight for _, one in rows])),
    }


def report(found: dict[int, list[tuple[str, Origin]]]) -> str:
    """Return the report as Markdown."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    lines = [
        "# Berlin search terms, month by month",
        "",
        "Share of a month's impressions (case folded, in %) that the K terms forecast highest meet."
        " Every month is forecast from those before it; the estimator is chosen by them, too."
        " Of terms forecast equal, the one asked for in the latest month is taken.",
        "",
        f"Made by `python -m bench.berlin`. Python {platform.python_version()}. Commit {commit}. "
        "Data: berlinonline/berlin_dataportal_searchterms, CC BY 3.0 DE.",
    ]
    for room, rows in found.items():
        mean = means(rows)
        lines += [
            "",
            f"## K = {room:,}",
            "",
            "| month | last month | all history | ours | estimator chosen | ahead of the default by"
            " | hindsight |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {month} | {100 * one.covered[LAST]:.1f} | {100 * one.covered[ALL]:.1f} "
                f"| {100 * one.ours:.1f} | {one.chosen} | {100 * one.gain:.2f} "
                f"| {100 * one.hindsight:.1f} |"
                for month, one in rows
            ),
            f"| **mean** | {100 * mean['last month']:.2f} | {100 * mean['all history']:.2f} "
            f"| **{100 * mean['ours']:.2f}** | | | {100 * mean['hindsight']:.2f} |",
            "",
            "Every estimator, mean of the months: "
            + ", ".join(
                f"{name} {100 * float(np.mean([one.covered[name] for _, one in rows])):.2f}"
                for name in rows[0][1].covered
            )
            + ".",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the report."""
    REPORT.write_text(report(forecast(Path(os.environ["WARMUP_DATA"]))), encoding="utf-8")


if __name__ == "__main__":
    main()
