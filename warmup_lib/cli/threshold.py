"""The command that calibrates from which similarity on an answer may serve another question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmup_lib import pipeline
from warmup_lib.cli.common import Call, as_day, command, percent, table
from warmup_lib.errors import InputDataError
from warmup_lib.stage import StageReport
from warmup_lib.threshold.pairs import Pair

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.option(
    "--day", callback=as_day, help="Day it is in force from; default: the last of the log."
)
@click.option(
    "--pairs",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='JSON lines {"a", "b", "same"} or {"text", "label"}, each with a tenant or without.',
)
@click.option("--show", is_flag=True, help="Print the texts of the nearest wrong hits.")
@command
def threshold(call: Call, *, day: str | None, pairs: Path | None, show: bool) -> None:
    """Calibrate each tenant's similarity threshold so that wrong hits stay under a bound.

    The pairs are those of a file, or of the log: two phrasings under one context, and whether they
    got one answer. Settings: threshold.bound (1 % of the hits), threshold.confidence (95 %).

    \b
    Examples:
      warmup threshold
      warmup threshold --pairs labelled.jsonl --day 2026-03-16
    """
    if show and call.as_json:
        raise InputDataError("--show prints texts for your eyes and can't be had with --json")
    shown: list[list[Any]] = []

    def keep(pair: Pair, a_text: str, b_text: str) -> None:
        shown.append([pair.tenant, pair.similarity, a_text, b_text])

    with call.progress() as progress:
        report = pipeline.threshold(
            call.config, day, pairs=pairs, show=keep if show else None, progress=progress
        )
    call.answer(
        {**report.facts, "seconds": round(report.seconds, 3), "notes": list(report.notes)},
        lambda console: _show(console, report, shown),
    )


def _show(console: Console, report: StageReport, wrong: list[list[Any]]) -> None:
    facts = report.facts
    rows = [
        [
            tenant if one["tenants"] == 1 else f"{tenant} (one of {one['tenants']} together)",
            _said(one, facts["configured"]),
            one["pairs"],
            one["hits"],
            one["wrong"],
            percent(one["upper"]) if one["hits"] else "-",
        ]
        for tenant, one in facts["tenants"].items()
    ]
    title = f"thresholds from {facts['source']}, in force from {facts['day']}"
    columns = ("tenant", "threshold", "pairs", "hits", "wrong", "wrong at most")
    console.print(table(title, *columns, rows=rows))
    for note in report.notes:
        console.print(f"- {note}", markup=False)
    if wrong:
        title = "wrong hits, nearest first"
        console.print(table(title, "tenant", "cosine", "a text", "another", rows=wrong))


def _said(one: dict[str, Any], configured: float) -> str:
    if one["verdict"] == "kept":
        return f"{one['threshold']:.3f}"
    if one["verdict"] == "none_keeps":
        return "equal only"
    return f"{configured:.3f} as configured"
