"""The command that tells which fields belong in a cache's key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmup_lib.cli.common import Call, as_day, command, percent, table

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.dimensions.report import Semantic
    from warmup_lib.dimensions.study import Study
    from warmup_lib.stage import Progress

_SAYS = {
    "needed": "needed: answers depend on it",
    "age": "answers change from day to day",
    "follows": "follows from the rest of the key",
    "not_needed": "not needed",
    "undecided": "too few repeats to decide",
}


@click.command()
@click.option("--day", callback=as_day, help="Last day of the lake; by default the newest.")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    help="Days that end with it.  [default: those of forecast.lookback]",
)
@click.option("--requests", type=click.Path(path_type=Path), help="A log file, in place of days.")
@click.option(
    "--without",
    multiple=True,
    metavar="FIELD",
    help="Leave a field out that follows from the answer (repeatable).",
)
@click.option(
    "--texts",
    type=click.IntRange(min=0),
    default=20_000,
    show_default=True,
    help="Latest distinct texts that are compared by similarity, too; 0: none.",
)
@click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False), help="Draw a PNG there, too."
)
@command
def dimensions(
    call: Call,
    *,
    day: str | None,
    days: int | None,
    requests: Path | None,
    without: tuple[str, ...],
    texts: int,
    figure: Path | None,
) -> None:
    """Tell which fields of requests answers depend on, and what each costs in a cache's key.

    User, device, region, hour and A/B arm in a key multiply the keys of one answer. For the log
    at hand: distinct keys, the hit ratio that could be had, and hits that would give another
    answer, with all fields in the key, with the key contract, with the fields that answers were
    seen to depend on, and with those and similar texts. Fields are columns, `params.NAME` and
    `extra.NAME`.

    \b
    Examples:
      warmup dimensions
      warmup dimensions --day 2026-03-16 --days 7 --figure dimensions.png
      warmup dimensions --requests requests.jsonl.gz --without extra.ticket --json
    """
    if requests is not None and (day or days):
        raise click.UsageError("--day and --days are of the lake: leave them out with --requests")
    from warmup_lib.dimensions.report import facts

    with call.progress() as progress:
        study, similar = _studied(call, day, days, requests, without, texts, progress)
    found = facts(study, similar)
    if figure is not None:
        from warmup_lib.cli.dimensions_figure import draw

        draw(figure, found)
        found["figure"] = str(figure)
    call.answer(found, lambda console: _show(console, found))


def _studied(
    call: Call,
    day: str | None,
    days: int | None,
    requests: Path | None,
    without: tuple[str, ...],
    texts: int,
    progress: Progress,
) -> tuple[Study, Semantic | None]:
    from datetime import timedelta

    from warmup_lib import pipeline
    from warmup_lib.dimensions.stage import of_days, of_files
    from warmup_lib.errors import InputDataError
    from warmup_lib.forecast.window import history

    config = call.config
    lake = pipeline.open_lake(config)
    if requests is not None:
        return of_files(
            [requests],
            lake,
            config,
            pipeline.open_keys(config),
            without=without,
            texts=texts,
            progress=progress,
        )
    known = lake.days("requests")
    if not known:
        raise InputDataError("the lake holds no requests: ingest logs first, or give --requests")
    if day is not None and day not in known:
        raise InputDataError(f"no requests of {day}: there are {known[0]} to {known[-1]}")
    lookback = timedelta(days=days) if days else config.forecast.lookback
    window = history(known, day or known[-1], lookback)
    return of_days(lake, window.days, config, without=without, texts=texts, progress=progress)


def _show(console: Console, facts: dict[str, Any]) -> None:
    window = facts["window"]
    console.print(
        f"{window['requests']:,} requests ({window['from']} to {window['to']}), "
        f"{window['questions']:,} questions; {window['compared_requests']:,} answers to "
        f"{window['compared_questions']:,} questions that came again were compared"
    )
    rows = [
        [
            name,
            "-" if s["dimensions"] is None else len(s["dimensions"]),
            s["keys"],
            percent(s["hit_ratio"]),
            percent(s["wrong_merge_rate"]),
            s["judged_hits"],
        ]
        for name, s in facts["schemes"].items()
    ]
    note = "wrong: of the hits whose two answers are known, those that would give another answer"
    columns = ("key", "fields", "keys", "could hit", "wrong", "judged")
    console.print(table("Ways to build keys", *columns, rows=rows, note=note))
    if similar := facts["schemes"].get("suggested_and_semantic"):
        same = similar["exact_on_the_same"]
        console.print(
            f"suggested_and_semantic is of the latest {similar['requests']:,} requests, on which "
            f"equal texts alone could hit {percent(same['hit_ratio'])}"
        )
    console.print(_fields(facts["dimensions"]))
    rows = [
        [g["dimensions"], g["added"] or "-", _big(g["possible_keys"]), g["keys"],
         percent(g["hit_ratio"]), percent(g["wrong_merge_rate"])]
        for g in facts["growth"]
    ]  # fmt: skip
    columns = ("fields", "added", "possible keys", "keys", "could hit", "wrong")
    console.print(table("How keys grow", *columns, rows=rows))
    if facts["left_out"]:
        rows = [[name, why] for name, why in facts["left_out"].items()]
        console.print(table("Fields left out", "field", "because it", rows=rows))
    for sentence in facts["says"]:
        console.print(sentence, soft_wrap=True)


def _fields(found: dict[str, dict[str, Any]]) -> Any:
    rows = [
        [
            name,
            f["values"],
            _SAYS[f["verdict"]],
            percent(f["effect"]),
            percent(f["at_most"]),
            f["comparisons"],
            "-" if f["keys_added"] is None else f["keys_added"],
            percent(f["hit_ratio_lost"]),
        ]
        for name, f in sorted(found.items(), key=lambda item: -(item[1]["keys_added"] or 0))
    ]
    columns = ("field", "values", "says the log", "wrong without it", "at most", "compared")
    note = (
        "wrong without it: of merges over its values, those with another answer, beyond chance and "
        "given the suggested fields"
    )
    title = "Fields, what answers depend on, and what each adds to the suggested key"
    return table(title, *columns, "keys added", "hits lost", rows=rows, note=note)


def _big(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"{count:.1e}"
