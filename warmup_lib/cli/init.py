"""The command that writes a commented settings file for this machine and checks what it names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import BaseModel

from warmup_lib.cli.common import Call, command, table
from warmup_lib.config import Config, load_config
from warmup_lib.errors import ConfigError, WarmupError

_TARGETS = """
# Targets of your own, in place of the above:
# targets:
#   - kind: redis
#     name: cache
#     url: rediss://USER:PASSWORD@HOST:6379/0   # or `connection`: an Airflow connection
#   - kind: host
#     name: vllm-0
#     url: http://HOST:8000                     # without /v1; or `connection`
#     api_key_env: VLLM_API_KEY                 # environment variable that holds its key
#     cache_salt: as-logged                     # what the gateway sends: none, as-logged, derived
#     models: {name-in-log: name-served}        # adapters: here or in layers.adapters
"""


@dataclass(frozen=True)
class Check:
    """One thing that was tried, and how it went."""

    name: str
    ok: bool
    seen: str


@click.command()
@click.option("--redis", help="URL of the Redis to warm; else the embedded one.")
@click.option("--host", "hosts", multiple=True, help="URL of a model host to warm (repeatable).")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("warmup.yaml"),
    show_default=True,
    help="File to write.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@command
def init(call: Call, redis: str | None, hosts: tuple[str, ...], out: Path, force: bool) -> None:
    """Write a commented settings file and check what it can reach.

    \b
    Examples:
      warmup init
      warmup init --redis redis://cache:6379/0 --host http://vllm-0:8000 --host http://vllm-1:8000
    """
    if out.exists() and not force:
        raise ConfigError(f"{out} exists: give --force to replace it, or --out another name")
    targets = _targets(redis, hosts)
    settings = call.config.model_copy(update={"targets": targets})
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render_config(settings), encoding="utf-8")
    config = load_config(out)
    checks = asyncio.run(run_checks(config))
    facts = {"path": str(out), "checks": [vars(c) for c in checks]}
    rows = [[c.name, "ok" if c.ok else "to do", c.seen] for c in checks]
    call.answer(
        facts,
        lambda console: console.print(
            f"wrote {out}", table("Checks", "what", "state", "seen", rows=rows)
        ),
    )


def _targets(redis: str | None, hosts: tuple[str, ...]) -> Any:
    if not redis and not hosts:
        return "embedded"
    raw: list[dict[str, Any]] = []
    if redis:
        raw.append({"kind": "redis", "name": "cache", "url": redis})
    raw += [{"kind": "host", "name": f"host-{i}", "url": url} for i, url in enumerate(hosts)]
    return Config.model_validate({"targets": raw}).targets


def render_config(config: Config) -> str:
    """Return the settings as YAML with every setting's meaning before it."""
    head = (
        "# Settings of the warm-up planner. A setting that is not in this file has its default.\n"
        "# The key secret is not here: it is in the environment variable that secret_env names.\n"
    )
    return head + "\n".join(_section(config, 0)) + "\n" + _TARGETS


def _section(section: BaseModel, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for name, info in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            doc = (type(value).__doc__ or "").splitlines()[0]
            lines += ["", f"{pad}# {doc}", f"{pad}{name}:", *_section(value, depth + 1)]
            continue
        if info.description:
            lines.append(f"{pad}# {info.description}")
        lines.append(f"{pad}{name}: {_value(value, pad)}")
    return lines


def _value(value: Any, pad: str) -> str:
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, list):
        raw = [v.model_dump(mode="json", exclude_defaults=False) for v in value]
        body = yaml.safe_dump(raw, sort_keys=False, allow_unicode=True).rstrip()
        return "\n" + "\n".join(f"{pad}  {line}" for line in body.splitlines())
    return str(yaml.safe_dump(value, allow_unicode=True)).replace("\n...", "").strip()


def _duration(value: timedelta) -> str:
    seconds = value.total_seconds()
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


async def run_checks(config: Config) -> list[Check]:
    """Return what of the configuration can be reached from here."""
    from warmup_lib.targets.open import open_targets
    from warmup_lib.targets.store import RedisStore

    checks = [_lake_check(config)]
    try:
        targets = open_targets(config)
    except WarmupError as error:
        return [*checks, Check("targets", False, str(error))]
    for target in targets:
        try:
            await target.epoch()
            seen = f"{target.kind} answers"
            if isinstance(target, RedisStore) and not await target.has_search():
                seen += "; no search module: similar questions will not be served"
            checks.append(Check(f"target {target.name}", True, seen))
        except WarmupError as error:
            checks.append(Check(f"target {target.name}", False, str(error)))
        finally:
            await target.close()
    return checks


def _lake_check(config: Config) -> Check:
    from warmup_lib.lake import Lake

    days = Lake(config.lake).days("requests")
    seen = (
        f"requests of {len(days)} days" if days else "no requests yet: `warmup ingest` reads logs"
    )
    return Check(f"lake {config.lake}", True, seen)
