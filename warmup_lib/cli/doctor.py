"""The command that looks for the seven traps, as far as what it was given lets it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from warmup_lib.cli.common import ERR, Call, command, table
from warmup_lib.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.config import Config
    from warmup_lib.doctor.examine import Examined


@click.command()
@click.option("--host", "host_url", help="Address of a model host, without /v1; it is probed.")
@click.option(
    "--model-dir",
    type=click.Path(path_type=Path),
    help="Folder of a model: its files are checked against its config before it is loaded.",
)
@click.option("--redis", "redis_url", help="URL of a Redis with cached answers; it is only read.")
@click.option(
    "--requests",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A request log, with the cache keys that the gateway wrote into it.",
)
@click.option(
    "--tensor-parallel",
    type=click.IntRange(min=1),
    help="Ranks over which the model is to be served.",
)
@click.option("--deep", is_flag=True, help="Load every tensor too (on CUDA, where there is one).")
@command
def doctor(
    call: Call,
    *,
    host_url: str | None,
    model_dir: Path | None,
    redis_url: str | None,
    requests: Path | None,
    tensor_parallel: int | None,
    deep: bool,
) -> None:
    """Look for the seven traps. Exit 1 when one is found, or a target is down.

    Without --host, --redis, --requests and --model-dir it looks at the first Redis and the first
    model host of the settings.

    \b
    Examples:
      warmup doctor
      warmup doctor --requests requests-2026-03-16.jsonl.gz
      warmup doctor --host http://127.0.0.1:8000 --redis redis://127.0.0.1:6379
      warmup doctor --model-dir /models/llama --tensor-parallel 8 --deep
    """
    from warmup_lib import pipeline
    from warmup_lib.doctor.examine import Given, examine
    from warmup_lib.targets.open import open_at

    if model_dir is None and (deep or tensor_parallel):
        raise ConfigError("--deep and --tensor-parallel are about a model: give --model-dir too")
    if not (host_url or redis_url or requests or model_dir):
        redis_url, host_url = _configured(call.config)
    host, store = open_at(call.config, host_url=host_url, redis_url=redis_url)
    given = Given(
        model_dir=model_dir,
        ranks=tensor_parallel or 1,
        deep=deep,
        host=host,
        store=store,
        requests=requests,
        lake=pipeline.open_lake(call.config),
    )
    with call.progress() as progress:
        found = examine(given, call.config, lambda: pipeline.open_keys(call.config), progress)
    facts = {
        "traps": {name: asdict(trap) for name, trap in found.traps.items()},
        "findings": [asdict(finding) for finding in found.findings],
        "down": found.down,
    }
    call.answer(facts, lambda console: show(console, found))
    for why in found.down:
        ERR.print(f"[bold red]error:[/] {why}", soft_wrap=True)
    if found.down or any(trap.status == "found" for trap in found.traps.values()):
        sys.exit(1)


def _configured(config: Config) -> tuple[str | None, str | None]:
    """Return the addresses of the settings' first Redis and first host, and say which they are."""
    from warmup_lib.targets.open import target_settings

    try:
        targets = [one for one in target_settings(config) if one.url]
    except ConfigError:
        return None, None
    chosen = [next((t for t in targets if t.kind == kind), None) for kind in ("redis", "host")]
    if names := ", ".join(f"{t.kind} '{t.name}'" for t in chosen if t):
        ERR.print(f"looking at {escape(names)} of the settings; --requests looks at a log too")
    redis, host = (t.url if t else None for t in chosen)
    return redis, host


def show(console: Console, found: Examined) -> None:
    """Print the traps as a table, then evidence and remedy of each that was found."""
    words = {"not_checked": "not checked"}
    rows = [[n, words.get(t.status, t.status), t.evidence] for n, t in found.traps.items()]
    console.print(table("Traps", "trap", "state", "evidence", rows=rows))
    for name, trap in found.traps.items():
        if trap.status == "found":
            console.print(f"{name}: {trap.evidence}", soft_wrap=True, markup=False)
            console.print(f"  remedy: {trap.remedy}", soft_wrap=True, markup=False)
    for finding in found.findings:
        console.print(f"{finding.severity}: {finding}", soft_wrap=True, markup=False)
