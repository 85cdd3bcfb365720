"""The commands of the main job: ingest, plan, apply, verify."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from warmup_lib import pipeline
from warmup_lib.cli import render, scoring
from warmup_lib.cli.common import Call, as_day, command, traffic
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError


@click.command()
@click.option(
    "--format",
    "dialect",
    default="auto",
    show_default=True,
    help="Log format: jsonl (canonical), litellm, or auto.",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@command
def ingest(call: Call, dialect: str, files: tuple[Path, ...]) -> None:
    """Read request logs (files or folders; .gz and .zst too) into the lake.

    \b
    Examples:
      warmup ingest --format jsonl logs/requests-2026-03-16.jsonl.gz
      warmup ingest --format litellm spend_logs.parquet
    """
    with call.progress() as progress:
        report = pipeline.ingest(call.config, _expand(files), dialect, progress)
    call.answer(
        {**report.facts, "seconds": round(report.seconds, 3), "notes": list(report.notes)},
        lambda console: render.ingest(console, report),
    )
    if report.facts["files_skipped"] == report.facts["files"]:
        raise InputDataError("no line is of a known log format (docs/requests.md has them)")
    if report.facts["rows_read"] and not report.facts["rows_kept"] + report.facts["duplicates"]:
        raise InputDataError(
            f"none of {report.facts['rows_read']} rows could be used; "
            "`warmup sql quarantine` lists the reasons"
        )


def _expand(files: tuple[Path, ...]) -> list[Path]:
    found: list[Path] = []
    empty = "no files in " + ", ".join(map(str, files))
    for path in files:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        elif path.is_file():
            found.append(path)
        else:
            raise InputDataError(f"no such file or folder: {path}")
    if not found:
        raise InputDataError(empty)
    return found


@click.group(invoke_without_command=True)
@click.option("--day", callback=as_day, help="Last log day to plan from.")
@click.option(
    "--strategy",
    type=click.Choice(["full", "incremental"]),
    default="full",
    show_default=True,
    help="Plan everything, or only what the current plan does not hold.",
)
@click.option("--since", callback=as_day, help="Only demand seen on or after this day.")
@click.option("--force", is_flag=True, help="Plan even where the current plan still serves.")
@command
def plan(call: Call, *, day: str | None, strategy: str, since: str | None, force: bool) -> None:
    """Choose what to warm after a day; warm nothing.

    A plan is made when demand has drifted from the current one past the configured threshold;
    otherwise the answer is "wait", with the current plan's id.

    \b
    Examples:
      warmup plan --day 2026-03-16
      warmup plan --day 2026-03-16 --strategy incremental --json
      warmup plan diff 2026-03-15-nightly-0a1b2c3d4e latest
    """
    if click.get_current_context().invoked_subcommand:
        return
    if day is None:
        raise click.UsageError("--day is needed: the last log day to plan from")
    with call.progress() as progress:
        built = pipeline.build_day(call.config, day, progress)
        report = pipeline.plan(
            call.config, day, strategy=strategy, since=since, force=force, progress=progress
        )
    stages = [
        {"stage": r.stage, "seconds": round(r.seconds, 3), "rows_out": r.rows_out, **r.facts}
        for r in built
    ]
    notes = render.plan_notes(report, built)
    call.answer(
        {**report.facts, "stages": stages, "notes": notes},
        lambda console: render.plan(console, report, built),
    )


@plan.command("diff")
@click.argument("a")
@click.argument("b")
@command
def plan_diff(call: Call, a: str, b: str) -> None:
    """Show what plan B added, kept and dropped against plan A.

    \b
    Example:
      warmup plan diff 2026-03-15-nightly-0a1b2c3d4e latest
    """
    facts = pipeline.plan_diff(call.config, a, b)
    call.answer(facts, lambda console: render.plan_diff(console, facts))


@plan.command("compare")
@click.argument("a")
@click.argument("b")
@command
def plan_compare(call: Call, a: str, b: str) -> None:
    """Show what warming plans A and B took and gained: time, memory, first tokens.

    Both are to be applied and, for the first tokens, verified on the same later day.

    \b
    Example:
      warmup plan compare 2026-03-16-nightly-0a1b2c3d4e latest
    """
    facts = pipeline.plan_compare(call.config, a, b)
    call.answer(facts, lambda console: render.plan_compare(console, facts))


@click.command()
@click.option(
    "--plan", "plan_id", required=True, help="Plan to warm; `latest`: the one named last."
)
@click.option("--layer", "layers", multiple=True, help="Only this layer (repeatable).")
@click.option("--target", "targets", multiple=True, help="Only this target (repeatable).")
@click.option("--resume", is_flag=True, help="Warm only what is not resident yet.")
@command
def apply(
    call: Call, plan_id: str, layers: tuple[str, ...], targets: tuple[str, ...], resume: bool
) -> None:
    """Warm a plan's items on the targets.

    Exit 1 where a target was down or not ready, where no host serves the models of a layer, where
    the warm-up window ended too early, or where less of what the targets can have was warmed than
    the gate `warmup_completion` asks for.

    \b
    Examples:
      warmup apply --plan latest
      warmup apply --plan 2026-03-16-nightly-5f6a7b8c9d --resume
      warmup apply --plan 2026-03-16-nightly-5f6a7b8c9d --layer responses
    """
    with call.progress() as progress:
        report = pipeline.apply(
            call.config,
            pipeline.plan_named(call.config, plan_id),
            layers=layers or None,
            targets=targets or None,
            resume=resume,
            progress=progress,
        )
    call.answer(
        {**report.facts, "notes": list(report.notes)},
        lambda console: render.apply(console, report),
    )
    if not _complete(report.facts, call.config):
        sys.exit(1)


def _complete(facts: dict[str, Any], config: Config) -> bool:
    """Say whether all targets got what they can have; what they can't have is no failure."""
    if facts["unavailable"] or facts["not_ready"] or facts["window_over"]:
        return False
    counts = [c for targets in facts["completion"].values() for c in targets.values()]
    allowed = 1.0 - config.gates.warmup_completion
    return all(c["failed"] + c["missing"] <= allowed * c["planned"] for c in counts)


@click.command()
@click.option(
    "--plan", "plan_id", required=True, help="Plan to verify; `latest`: the one named last."
)
@traffic
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw forecasts beside what came true into this PNG; needs --day.",
)
@command
def verify(
    call: Call, plan_id: str, requests: Path | None, day: str | None, figure: Path | None
) -> None:
    """Prove what is resident and measure the hit ratio on later traffic.

    Exit 1 where a gate failed or a target was down.

    \b
    Examples:
      warmup verify --plan latest
      warmup verify --plan 2026-03-16-nightly-5f6a7b8c9d --day 2026-03-17
      warmup verify --plan latest --day 2026-03-17 --figure forecasts.png
    """
    if requests and day:
        raise click.UsageError("give --requests or --day, not both")
    if figure and not day:
        raise click.UsageError("--figure needs --day: forecasts are of whole days")
    with call.progress() as progress:
        report = pipeline.verify(
            call.config,
            pipeline.plan_named(call.config, plan_id),
            day=day,
            requests=requests,
            progress=progress,
        )
    call.answer(
        {**report.facts, "notes": list(report.notes)},
        lambda console: render.verify(console, report),
    )
    if figure and report.facts.get("calibration"):
        scoring.draw(figure, report.facts)
    gates: dict[str, Any] = report.facts["gates"]
    if report.facts.get("unavailable") or not all(g["passed"] for g in gates.values()):
        sys.exit(1)
