"""The command group: names the commands and imports each one's module when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from warmup_lib import __version__

COMMANDS = {
    "init": "init",
    "stack": "stack",
    "ingest": "work",
    "plan": "work",
    "apply": "work",
    "verify": "work",
    "backtest": "backtest",
    "doctor": "doctor",
    "sql": "sql",
    "demo": "demo",
}
"""Command -> module of warmup_lib.cli, in the order in which they are used."""


class _Lazy(click.Group):
    """Imports a command's module only when that command runs, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

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
    """
