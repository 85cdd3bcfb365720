"""The command that tries cache policies on an id trace or on the lake."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import TypeAdapter, ValidationError

from warmup_lib.cli.common import Call, as_day, command, percent, table
from warmup_lib.config.kinds import Duration

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.forecast.trace import Trace

_SHOWN = 24


def _as_duration(_: click.Context, parameter: click.Parameter, value: str) -> timedelta:
    try:
        found: timedelta = TypeAdapter(Duration).validate_python(value)
    except ValidationError:
        raise click.BadParameter(
            f"'{value}' is not a time such as 10m, 1h or 1d", param=parameter
        ) from None
    return found


@click.command()
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    help="Id trace; without it the requests of the lake are used.",
)
@click.option(
    "--capacity", type=click.IntRange(1, 10**9), required=True, help="Items a cache holds."
)
@click.option(
    "--period",
    default="1h",
    show_default=True,
    callback=_as_duration,
    help="How often a plan is made: 10m, 1h, 1d ...",
)
@click.option(
    "--natural",
    type=click.Choice(["lru", "lfu"]),
    multiple=True,
    default=["lru", "lfu"],
    show_default=True,
    help="Policies that the cache can have by itself (repeatable).",
)
@click.option(
    "--fixed-plans",
    is_flag=True,
    help="Plans can't be renewed as requests come, only when a period begins.",
)
@click.option(
    "--layer",
    type=click.Choice(["responses", "embeddings", "prefixes"]),
    help="Of the lake: the layer whose items are asked for.  [default: responses]",
)
@click.option("--day", callback=as_day, help="Of the lake: the last day; by default the newest.")
@click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False), help="Draw a PNG there, too."
)
@command
def backtest(
    call: Call,
    *,
    trace: Path | None,
    capacity: int,
    period: timedelta,
    natural: tuple[str, ...],
    fixed_plans: bool,
    layer: str | None,
    day: str | None,
    figure: Path | None,
) -> None:
    """Try cache policies on past requests: what each would have hit, and whether to warm.

    A trace is CSV or JSON lines with ts,item[,cost_ms][,bytes][,tenant], or JSON lines with
    timestamp and hash_ids; compressed or not. ts is ISO-8601 or an epoch in s, ms, us or ns. All
    caches begin empty and hold CAPACITY items of any size. `ours` chooses, looking back only, how
    much to reserve for planned items, by which forecast, and what the rest does. static_last and
    static_all hold what was asked for most in the last period, or before; static_hindsight holds
    what the very period asks for most, and belady evicts what comes again last: these two know the
    future, and show how much could be had at most.

    \b
    Examples:
      warmup backtest --trace accesses.csv.gz --capacity 10000
      warmup backtest --trace blocks.jsonl --capacity 50000 --period 10m --figure blocks.png
      warmup backtest --lake ./lake --layer prefixes --capacity 40 --period 1d --json
    """
    if trace is not None and (layer or day):
        raise click.UsageError("--layer and --day are of the lake: leave them out with --trace")
    from warmup_lib.forecast.backtest import backtest as run
    from warmup_lib.forecast.trace import check_periods

    accesses = _trace(call, trace, layer or "responses", day)
    check_periods(accesses, capacity, period, call.config.zone)
    with call.progress() as progress:
        done = run(
            accesses,
            capacity,
            period,
            call.config.zone,
            natural,
            renewed=not fixed_plans,
            progress=progress,
        )
    facts = done.facts()
    if figure is not None:
        from warmup_lib.cli.backtest_figure import draw

        draw(figure, done, trace.name if trace else f"lake, {layer or 'responses'}")
        facts["figure"] = str(figure)
    call.answer(facts, lambda console: _show(console, facts))


def _trace(call: Call, path: Path | None, layer: str, day: str | None) -> Trace:
    if path is not None:
        from warmup_lib.forecast.trace_file import read_trace

        return read_trace(path, call.config.zone)
    from warmup_lib import pipeline
    from warmup_lib.errors import InputDataError
    from warmup_lib.forecast.trace_lake import lake_trace
    from warmup_lib.forecast.window import history

    lake = pipeline.open_lake(call.config)
    days = lake.days("requests")
    if not days:
        raise InputDataError("the lake holds no requests: ingest logs first, or give --trace")
    window = history(days, day or max(days), call.config.forecast.lookback)
    return lake_trace(lake, window.days, layer)


def _show(console: Console, facts: dict[str, Any]) -> None:
    trace, plan = facts["trace"], facts["plan"]
    rejected = sum(trace["rows_rejected"].values())
    why = ", ".join(f"{reason}: {count:,}" for reason, count in trace["rows_rejected"].items())
    console.print(
        f"{trace['accesses']:,} accesses to {trace['items']:,} items in {trace['periods']:,} "
        f"periods ({trace['from']} to {trace['to']}); {rejected:,} of {trace['rows_read']:,} rows "
        "could not be used" + (f" ({why})" if why else ""),
        soft_wrap=True,
    )
    rows = [
        [
            name,
            percent(f["hit_ratio"]),
            *map(percent, f["early_hit_ratio"].values()),
            percent(f["byte_hit_ratio"]),
            percent(f["cost_hit_ratio"]),
        ]
        for name, f in facts["policies"].items()
    ]
    columns = ("policy", "hits", "first 5m", "first 15m", "first 60m", "of bytes", "of cost")
    title = f"Caches of {facts['capacity']:,} items"
    note = "static_hindsight and belady know the future; docs/backtest.md explains all of them"
    console.print(table(title, *columns, rows=rows, note=note))
    rows = [[kind, *_way(way), percent(way["hit_ratio"])] for kind, way in plan["ways"].items()]
    console.print(table("The best way of each kind", "kind", *_WAY, "would hit", rows=rows))
    periods = facts["periods"]
    rows = [
        [p["begins"], p["accesses"], *_way(p), len(p["changes"]), percent(p["hit_ratio"])]
        for p in periods[-_SHOWN:]
    ]
    title = "Chosen when each period began" + (
        f" (the last {_SHOWN})" if len(periods) > _SHOWN else ""
    )
    columns = ("period", "accesses", *_WAY, "changes within", "hits")
    console.print(table(title, *columns, rows=rows))
    console.print(f"Chosen: [bold]{facts['chosen_policy']}[/]. {plan['says']}", soft_wrap=True)


_WAY = ("reserve", "planned by", "rest")


def _way(way: dict[str, Any]) -> list[str]:
    renewed = " (renewed)" if way["renewed"] else ""
    return [
        f"{way['reserve']:.0%}",
        f"{way['estimator'] or '-'}{renewed}",
        way["natural"] or "-",
    ]
