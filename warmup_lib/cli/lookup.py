"""The command that looks one request up as an application would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmup_lib.cli.common import Call, command, table

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.evidence import Looked
    from warmup_lib.reader import Found


@click.command()
@click.argument("prompt")
@click.option("--tenant", required=True, help="Who asks.")
@click.option("--model", required=True, help="Model, as in the log.")
@click.option("--model-revision", help="Its revision, where the log has one.")
@click.option("--adapter", help="Adapter, as in the log.")
@click.option("--system-prompt", help="System prompt.")
@click.option("--tools", type=click.Path(path_type=Path, dir_okay=False), help="JSON list of them.")
@click.option("--param", "params", multiple=True, help="NAME=VALUE of a parameter (repeatable).")
@click.option("--dimension", "dimensions", multiple=True, help="NAME=VALUE of one (repeatable).")
@click.option("--header", "headers", multiple=True, help="NAME: VALUE of a header (repeatable).")
@click.option("--user-segment", help="Segment of the user, to look for its vector.")
@click.option("--retrieves", is_flag=True, help="Look for a ready list of chunks too.")
@click.option("--redis", help="Name of the Redis to look in; else the first one.")
@command
def lookup(
    call: Call,
    prompt: str,
    tenant: str,
    model: str,
    model_revision: str | None,
    adapter: str | None,
    system_prompt: str | None,
    tools: Path | None,
    params: tuple[str, ...],
    dimensions: tuple[str, ...],
    headers: tuple[str, ...],
    user_segment: str | None,
    retrieves: bool,
    redis: str | None,
) -> None:
    """Show what an application would find for a request: which layers hold it, and under which key.

    The answer itself is not shown. Exit 1 where the Redis is down; a miss is no failure.

    \b
    Examples:
      warmup lookup --tenant acme-bank --model smollm2-135m-instruct "How do I freeze my card?"
      warmup lookup --tenant acme-bank --model llama --param temperature=0.2 "How do I pay?"
    """
    from dataclasses import replace

    from warmup_lib import pipeline
    from warmup_lib.errors import StoreUnavailable
    from warmup_lib.keys import Request
    from warmup_lib.layers.reading import open_cache
    from warmup_lib.reader import SyncReader

    request = Request(
        tenant,
        model,
        prompt,
        system_prompt,
        tools=_tools(tools),
        model_revision=model_revision,
        adapter=adapter,
        params={name: _value(value) for name, value in _pairs("--param", params, "=")},
        dimensions=dict(_pairs("--dimension", dimensions, "=")),
    )
    cache = open_cache(call.config, pipeline.open_keys(call.config), name=redis)
    patient = replace(cache, timeout_s=call.config.apply.timeout.total_seconds())
    with SyncReader(patient) as reader:
        found = reader.lookup(
            request,
            headers=_pairs("--header", headers, ":"),
            user_segment=user_segment,
            retrieves=retrieves,
        )
    if not found.reached:
        fault = next(look.error for look in found.evidence.looked if look.error)
        raise StoreUnavailable(redis or "redis", fault)
    answer = facts(found)
    call.answer(answer, lambda console: show(console, answer))


def facts(found: Found) -> dict[str, Any]:
    """Return what was found: the layer that helps most, and every look."""
    best = found.served or _warmest(found.evidence.looked)
    return {
        "hit": best is not None,
        "layer": best.layer if best else None,
        "key": (best.nearest or best.key) if best else None,
        "similarity": (1.0 if best.similarity is None else best.similarity) if best else None,
        "match": found.match,
        "item_id": found.item_id,
        "chunk_ids": list(found.chunk_ids) if found.chunk_ids is not None else None,
        "bypass": found.evidence.bypass,
        "evidence": found.evidence.to_dict(),
    }


def _warmest(looked: tuple[Looked, ...]) -> Looked | None:
    """Return the look that helps most where no answer serves: a chunk list, else the vector.

    A known system prompt or segment says nothing of the prompt itself.
    """
    found = {look.layer: look for look in looked if look.found == "hit"}
    return found.get("retrieval.l3") or found.get("embeddings")


def show(console: Console, answer: dict[str, Any]) -> None:
    """Print the looks as a table."""
    rows = [
        [
            look["layer"],
            "similar" if _similar(look) else "equal",
            look["found"].replace("_", " "),
            look.get("similarity", "-"),
            look.get("threshold", "-"),
            look.get("nearest") or look["key"],
        ]
        for look in answer["evidence"]["looked"]
    ]
    if answer["bypass"]:
        console.print(f"a {answer['bypass']} tells the caches to stand aside: nothing is looked up")
        return
    state = f"found in {answer['layer']}" if answer["hit"] else "not found"
    columns = ("layer", "looked for", "found", "similarity of nearest", "needed", "nearest or key")
    console.print(table(f"Lookup: {state}", *columns, rows=rows))


def _similar(look: dict[str, Any]) -> bool:
    """Say whether a look was for something similar: it had a threshold, or found a neighbour."""
    return "threshold" in look or "nearest" in look


def _tools(file: Path | None) -> list[Any] | None:
    from warmup_lib.errors import InputDataError

    if file is None:
        return None
    try:
        tools = json.loads(file.read_bytes())
    except ValueError:
        tools = None
    if not isinstance(tools, list):
        raise InputDataError("--tools must name a file that holds a JSON list")
    return tools


def _pairs(option: str, given: tuple[str, ...], mark: str) -> list[tuple[str, str]]:
    pairs = []
    for one in given:
        name, found, value = one.partition(mark)
        if not found or not name.strip():
            raise click.UsageError(f"{option} takes NAME{mark}VALUE")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _value(said: str) -> Any:
    """Return a parameter as JSON says it, else as a text."""
    try:
        return json.loads(said)
    except ValueError:
        return said
