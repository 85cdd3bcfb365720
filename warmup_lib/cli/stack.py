"""The commands of the embedded stack: up, down, status."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from warmup_lib.cli.common import ERR, Call, command, table
from warmup_lib.config import warmup_home
from warmup_lib.stack import StackState

if TYPE_CHECKING:
    from rich.console import Console


@click.group()
def stack() -> None:
    """Start and stop the embedded Redis and model host (loopback only)."""


@stack.command()
@click.option(
    "--hosts",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Model hosts to start.",
)
@click.option("--no-model-host", is_flag=True, help="Redis only.")
@command
def up(call: Call, hosts: int, no_model_host: bool) -> None:
    """Set up what is missing and start what does not run; the first time takes minutes.

    \b
    Examples:
      warmup stack up
      warmup stack up --no-model-host
    """
    from warmup_lib.stack import up as start

    def say(line: str) -> None:
        ERR.print(f"  {line}", soft_wrap=True, markup=False)

    state = start(warmup_home(), hosts=hosts, model_host=not no_model_host, progress=say)
    call.answer(facts(state), lambda console: show(console, state))


@stack.command()
@command
def down(call: Call) -> None:
    """Stop what `up` started. Safe to run twice.

    \b
    Example:
      warmup stack down
    """
    from warmup_lib.stack import down as stop

    stopped = stop(warmup_home())
    call.answer(
        {"stopped": stopped},
        lambda console: console.print(
            f"stopped {len(stopped)} process{'es' if len(stopped) != 1 else ''}"
        ),
    )


@stack.command()
@command
def status(call: Call) -> None:
    """Show what runs. Exit 1 when nothing does.

    \b
    Example:
      warmup stack status --json
    """
    from warmup_lib.stack import status as look

    state = look(warmup_home())
    call.answer(facts(state), lambda console: show(console, state))
    if state.redis is None and not state.hosts:
        sys.exit(1)


def facts(state: StackState) -> dict[str, object]:
    """Return the urls, versions and pids of the running services by name."""
    services = ([state.redis] if state.redis else []) + list(state.hosts)
    return {
        "urls": {s.name: s.url for s in services},
        "versions": {s.name: s.version for s in services},
        "pids": {s.name: s.pid for s in services},
        "services": [s.model_dump(mode="json") for s in services],
        "skipped": list(state.skipped),
    }


def show(console: Console, state: StackState) -> None:
    """Print the running services as a table, and what was skipped and why."""
    services = ([state.redis] if state.redis else []) + list(state.hosts)
    rows = [[s.name, s.url, s.version, s.model or "", str(s.pid)] for s in services]
    if rows:
        console.print(table("Embedded stack", "name", "url", "version", "model", "pid", rows=rows))
    else:
        console.print("nothing runs; `warmup stack up` starts it")
    for reason in state.skipped:
        console.print(f"[yellow]skipped:[/] {reason}", soft_wrap=True)
