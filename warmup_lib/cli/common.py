"""What all commands share: their common options, progress bars, output and error handling."""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from warmup_lib.config import Config, load_config
from warmup_lib.errors import WarmupError
from warmup_lib.stage import Progress as Shown
from warmup_lib.stage import silent

ERR = Console(stderr=True, highlight=False)
_PIPED_WIDTH = 160
_LONGEST_CELL = 160


@dataclass
class Call:
    """One call of a command: its settings, and how it answers."""

    config: Config
    as_json: bool
    answered: bool = False

    def answer(self, facts: dict[str, Any], show: Callable[[Console], None]) -> None:
        """Print one JSON object with `--json`, else what `show` prints."""
        self.answered = True
        if self.as_json:
            click.echo(json.dumps(_strict(facts), ensure_ascii=False, default=str, allow_nan=False))
        else:
            show(Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH))

    @contextmanager
    def progress(self) -> Iterator[Shown]:
        """Yield a progress callback: a bar on a terminal, nothing elsewhere."""
        if self.as_json or not sys.stderr.isatty():
            yield silent
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=ERR, transient=True) as bar:
            tasks: dict[str, Any] = {}

            def show(what: str, done: int, total: int | None) -> None:
                if what not in tasks:
                    tasks[what] = bar.add_task(what, total=total)
                bar.update(tasks[what], completed=done, total=total)

            yield show


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--config`, `--lake`, `--json` and one way to fail.

    The wrapped function gets a `Call` as its first argument.
    """

    @click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Settings file; without it ./warmup.yaml where there is one, else the defaults.",
    )
    @click.option("--lake", help="Folder or object-store URL of the tables.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
    @functools.wraps(function)
    def wrapped(
        config_path: Path | None, lake: str | None, as_json: bool, **arguments: Any
    ) -> None:
        call = None
        try:
            call = Call(load_config(config_path, lake=lake), as_json)
            function(call, **arguments)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (KeyboardInterrupt, Exception) as error:
            _end(error, as_json and not (call and call.answered))

    return wrapped


def _end(error: BaseException, as_json: bool) -> NoReturn:
    """Say what ended a command, and exit."""
    if isinstance(error, KeyboardInterrupt) or _stopped(error):
        interrupted(as_json)
    if isinstance(error, WarmupError):
        fail(str(error), error, as_json)
    if isinstance(error, OSError | OverflowError):
        said = f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}"
        fail(said, error, as_json)
    if os.environ.get("WARMUP_DEBUG") == "1":
        raise error
    # Its message is not ours: it could hold a prompt.
    said = f"{type(error).__name__}: this is a bug; WARMUP_DEBUG=1 shows its traceback"
    fail(said, error, as_json)


def _stopped(error: BaseException) -> bool:
    """Say whether an error is what DuckDB makes of an interrupt while a query runs."""
    return type(error) is RuntimeError and str(error) == "Query interrupted"


def interrupted(as_json: bool) -> NoReturn:
    """Say that the user stopped a command, and exit as a shell expects: 128 and the signal."""
    if as_json:
        click.echo(json.dumps({"error": "interrupted", "kind": "KeyboardInterrupt"}))
    ERR.print("interrupted")
    sys.exit(128 + signal.SIGINT)


def fail(said: str, error: BaseException, as_json: bool) -> NoReturn:
    """Print a sentence, with `as_json` as an object too, and exit with the error's code."""
    if as_json:
        say_json(said, error)
    ERR.print(f"[bold red]error:[/] {escape(said)}", soft_wrap=True)
    sys.exit(getattr(error, "exit_code", 2))


def say_json(said: str, error: BaseException) -> None:
    """Print an error as the one JSON object of `--json`."""
    click.echo(json.dumps({"error": said, "kind": type(error).__name__}))


def _strict(value: Any) -> Any:
    """Return a value as JSON can say it: what is no finite number is null, keys are texts."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_day(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return an option's day as an ISO date, or say what a day looks like."""
    if value is None:
        return None
    try:
        day = date.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is not a day such as 2026-03-16", param=parameter
        ) from None
    # History reaches up to a century back, and what is planned for comes after.
    if not 1900 <= day.year < 9000:
        raise click.BadParameter(f"no log has a day such as '{value}'", param=parameter)
    return day.isoformat()


def traffic(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--requests` and `--day`, which name the later traffic that it judges by."""
    of_day = click.option("--day", callback=as_day, help="Later traffic as a day of the lake.")
    of_file = click.option(
        "--requests",
        type=click.Path(path_type=Path, exists=True),
        help="Later traffic as a log file; it is not stored.",
    )
    return of_file(of_day(function))


def table(
    title: str,
    *columns: str,
    rows: list[list[Any]],
    note: str | None = None,
    whole: bool = False,
) -> Table:
    """Return a table with numbers set right; long texts are cut unless they are asked for whole."""
    shown = Table(title=Text(title), title_justify="left", caption=note, caption_justify="left")
    for index, name in enumerate(columns):
        numeric = all(isinstance(r[index], int | float) or r[index] in ("", "-") for r in rows)
        shown.add_column(
            Text(name), justify="right" if numeric and rows else "left", overflow="fold"
        )
    for row in rows:
        shown.add_row(*[Text(_cell(v, whole)) for v in row])
    return shown


def _cell(value: Any, whole: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    text = " ".join(str(value).split())
    return text if whole or len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


def percent(value: float | None) -> str:
    """Return a share as a percentage with two decimals."""
    return "-" if value is None else f"{100 * value:.2f} %"
