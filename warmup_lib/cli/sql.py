"""The command of the data team: a report, or a SQL shell on the lake."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from warmup_lib import pipeline
from warmup_lib.cli.common import ERR, Call, as_day, command, table
from warmup_lib.errors import GateFailed, InputDataError
from warmup_lib.reports import Result, find_reports, run_report

if TYPE_CHECKING:
    import duckdb
    from rich.console import Console

_NARROWEST = 10
"""Characters below which columns can't be read."""


@click.command()
@click.argument("report", required=False)
@click.option(
    "--day", callback=as_day, help="Day to report on; by default the newest that has rows."
)
@click.option("--list", "list_them", is_flag=True, help="List the reports and what they show.")
@command
def sql(call: Call, report: str | None, day: str | None, list_them: bool) -> None:
    """Run a report, or, without one, read SQL from the terminal or from stdin.

    Every table of the lake is a view (requests, prompts, clusters, plan, receipts, hits ...).

    \b
    Examples:
      warmup sql --list
      warmup sql top_clusters --day 2026-03-16
      echo "SELECT day, count(*) FROM requests GROUP BY day ORDER BY day" | warmup sql
    """
    if list_them:
        _list(call)
    elif report is None:
        if day is not None:
            raise click.UsageError("--day is for a report: `warmup sql --list` names them")
        _shell(call)
    else:
        _report(call, run_report(pipeline.open_lake(call.config), report, day))


def _list(call: Call) -> None:
    found = {n: r.metadata for n, r in find_reports().items()}
    call.answer(
        {"reports": {n: m["description"] for n, m in found.items()}},
        lambda console: console.print(
            table(
                "Reports",
                "report",
                "what a row is",
                rows=[[n, m["description"]] for n, m in found.items()],
                whole=True,
            )
        ),
    )


def _report(call: Call, result: Result) -> None:
    rows = _records(result.columns, result.rows)
    facts = {
        "report": result.report,
        "day": result.day,
        "rows": rows,
        "failed_checks": result.failed,
        "warnings": result.warned,
    }
    title = f"{result.report}, {result.day or 'no day yet'}"
    call.answer(facts, lambda console: _show(console, title, result.columns, result.rows))
    if not result.rows:
        ERR.print(_nothing(result))
    for warning in result.warned if result.rows else ():
        ERR.print(f"[yellow]check:[/] {escape(warning)}")
    if result.failed:
        raise GateFailed(f"{result.report} is not sound: {'; '.join(result.failed)}")


def _nothing(result: Result) -> str:
    if result.newest is None:
        return "no rows: the lake holds nothing of this kind yet"
    of = " (days of ingest, not of the log)" if result.report == "quarantine" else ""
    return f"no rows for {result.day}: the newest day that has any is {result.newest}{of}"


def _show(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Print rows as a table, or each as lines of its own where the terminal is too narrow."""
    if len(columns) * _NARROWEST <= console.width or not rows:
        console.print(table(title, *columns, rows=[_blank(r) for r in rows]))
        return
    for number, row in enumerate(rows, start=1):
        lines = [[name, value] for name, value in zip(columns, _blank(row), strict=True)]
        heading = f"{title}: row {number}" if title else f"row {number}"
        console.print(table(heading, "column", "value", rows=lines))


def _records(columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return rows by column; of columns with one name, those after the first get a number."""
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names or (number > 1 and name in columns):
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _blank(row: tuple[Any, ...]) -> list[Any]:
    return ["" if v is None else v for v in row]


def _shell(call: Call) -> None:
    connection = pipeline.open_lake(call.config).sql()
    answers: list[dict[str, Any]] = []
    failed = False
    for text in _texts():
        for statement in _parsed(connection, text):
            failed = not (statement and _run(call, connection, statement, answers)) or failed
    if call.as_json:
        call.answer({"rows": answers}, lambda _: None)
    if failed:
        sys.exit(2)


def _run(
    call: Call,
    connection: duckdb.DuckDBPyConnection,
    statement: duckdb.Statement,
    answers: list[dict[str, Any]],
) -> bool:
    import duckdb

    try:
        rows = _rows(connection, statement)
    except duckdb.Error as error:
        _refuse(error)
        return False
    columns = [d[0] for d in connection.description or []]
    if call.as_json:
        answers += _records(columns, rows)
    else:
        call.answer({}, lambda console: _show(console, "", columns, rows))
    return True


def _rows(
    connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement
) -> list[tuple[Any, ...]]:
    """Run a statement such that Ctrl-C stops it at once.

    In the main thread DuckDB looks for signals only between its tasks, and one can last for hours.
    """
    stop = Event()
    # Not as an exception, which could come before there is anything to interrupt.
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(lambda: connection.execute(statement).fetchall())
            while wait([running], timeout=0.1).not_done:
                if stop.is_set():
                    connection.interrupt()
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.is_set():
        raise KeyboardInterrupt
    return running.result()


def _parsed(connection: duckdb.DuckDBPyConnection, text: str) -> list[duckdb.Statement | None]:
    """Return the statements of a text; where it is no SQL, say so and return one None."""
    import duckdb

    try:
        return [*connection.extract_statements(text)]
    except duckdb.Error as error:
        _refuse(error)
        return [None]


def _refuse(error: duckdb.Error) -> None:
    ERR.print(f"[bold red]error:[/] {escape(str(error).splitlines()[0])}")


def _texts() -> Iterator[str]:
    """Yield texts of SQL: what is typed at a prompt up to a `;`, or all that is piped in."""
    if not sys.stdin.isatty():
        try:
            yield sys.stdin.buffer.read().decode()
        except UnicodeDecodeError:
            raise InputDataError("what stdin gives is no UTF-8") from None
        return
    ERR.print("SQL on the lake; end a statement with ';', leave with Ctrl-D. Try: SHOW TABLES;")
    held = ""
    while True:
        try:
            held += input("warmup> " if not held else "   ...> ") + "\n"
        except EOFError:
            return
        if held.rstrip().endswith(";"):
            yield held
            held = ""
