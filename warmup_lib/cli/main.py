"""The command group: names the commands and imports each one's module when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from warmup_lib import __version__

COMMANDS = {
    "init": "init",
    "stack": "stack",
    "ingest": "work",
    "threshold": "threshold",
    "plan": "work",
    "apply": "work",
    "verify": "work",
    "explain": "explain",
    "lookup": "lookup",
    "backtest": "backtest",
    "dimensions": "dimensions",
    "doctor": "doctor",
    "metrics": "metrics",
    "sql": "sql",
    "demo": "demo",
}
"""Command -> module of warmup_lib.cli, in the order in which they are used."""


@contextmanager
def _said_as_json(wanted: bool) -> Iterator[None]:
    """Print wrong usage as a JSON object too, as commands print their own errors.

    An interrupt while a command is being imported ends as one while it runs.
    """
    try:
        yield
    except KeyboardInterrupt:
        from warmup_lib.cli.common import interrupted

        interrupted(wanted)
    except click.ClickException as error:
        if wanted:
            from warmup_lib.cli.common import say_json

            say_json(error.format_message(), error)
        raise


class _Lazy(click.Group):
    """Imports a command's module only when that command runs, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["json"] = "--json" in args
        with _said_as_json(ctx.meta["json"]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _said_as_json(ctx.meta["json"]):
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"warmup_lib.cli.{COMMANDS[cmd_name]}")
        found: click.Command = getattr(module, cmd_name)
        return found


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="warmup")
def main() -> None:
    """Decide from request logs what is worth warming, warm it, and prove it.

    \b
    Examples:
      warmup init                                  write a settings file for this machine
      warmup stack up                              start an embedded Redis and model host
      warmup ingest --format auto logs/*.jsonl.gz  read request logs
      warmup plan --day 2026-03-16                 choose what to warm
      warmup apply --plan latest                   warm it
      warmup verify --plan latest --day 2026-03-17 prove it, and measure the hit ratio
      warmup explain --plan latest --day 2026-03-17 tell why requests missed
    """
