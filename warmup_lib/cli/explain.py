"""The command that tells why later requests missed, and what to do about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from warmup_lib import pipeline
from warmup_lib.cli.common import Call, command, percent, table, traffic

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.stage import StageReport

_BAR = 30


@click.command()
@click.option(
    "--plan", "plan_id", required=True, help="Plan to explain; `latest`: the one named last."
)
@traffic
@command
def explain(call: Call, plan_id: str, requests: Path | None, day: str | None) -> None:
    """Tell why each later request missed, and what to do about it.

    What a gateway wrote into its log is what happened then; for the rest, run `warmup verify` on
    the same traffic before. Exit 1 where a target was down.

    \b
    Examples:
      warmup explain --plan latest --day 2026-03-17
      warmup explain --plan 2026-03-16-nightly-5f6a7b8c9d --requests later.jsonl.gz
    """
    if (requests is None) == (day is None):
        raise click.UsageError("give --requests or --day, one of them")
    with call.progress() as progress:
        report = pipeline.explain(
            call.config,
            pipeline.plan_named(call.config, plan_id),
            day=day,
            requests=requests,
            progress=progress,
        )
    call.answer(
        {**report.facts, "notes": list(report.notes)}, lambda console: show(console, report)
    )
    if report.facts["unavailable"]:
        sys.exit(1)


def show(console: Console, report: StageReport) -> None:
    """Print causes by layer as bars, then what to do about each."""
    causes(console, report.facts)
    for note in report.notes:
        console.print(f"[dim]note:[/] {escape(note)}", soft_wrap=True)


def causes(console: Console, facts: dict[str, Any]) -> None:
    """Print the causes of each layer's misses, and the remedy of each cause."""
    if not facts["misses"]:
        return
    rows = [
        [layer if first else "", cause, count, percent(share), "█" * max(1, round(_BAR * share))]
        for layer, counts in facts["by_layer"].items()
        for first, cause, count, share in _shares(counts)
    ]
    title = f"Why {facts['misses']:,} look-ups of {facts['window']} missed"
    console.print(table(title, "layer", "cause", "misses", "share", "", rows=rows))
    for one in facts["remedies"]:
        console.print(
            f"[bold]{one['cause']}[/] ({one['count']:,}): {one['meaning']}. {one['remedy']} "
            f"[dim]{one['link']}[/]",
            soft_wrap=True,
        )
    console.print(f"unknown: {percent(facts['unknown_share'])} of the misses")


def _shares(counts: dict[str, int]) -> list[tuple[bool, str, int, float]]:
    total = sum(counts.values())
    return [(not n, cause, k, k / total) for n, (cause, k) in enumerate(counts.items())]
