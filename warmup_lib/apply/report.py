"""What an apply tells its caller: completion, costs by layer, and sentences on what went amiss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from warmup_lib.apply.worker import Done, Share
from warmup_lib.errors import TargetUnavailable
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import RedisStore

if TYPE_CHECKING:
    import pyarrow as pa

_REASONS = 5
"""Reasons of failed items that are told of one target."""

Shares = Mapping[str, Sequence[Share]]
"""Each target's layers and items."""


def completion(shares: Shares, receipts: pa.Table, since: datetime, down: set[str]) -> Any:
    """Return planned and done items by layer and target.

    Args:
        shares: Each target's layers and items.
        receipts: The last receipt of each item and target.
        since: When this run began. What an older receipt tells, it looked at: `already`.
        down: Targets that did not answer; of their older receipts it knows nothing: `missing`.
    """
    status: dict[tuple[str, str], str] = {}
    for row in receipts.select(["item_id", "target", "status", "at"]).to_pylist():
        told = row["status"]
        if row["at"] < since:
            found = row["target"] not in down and told in ("warmed", "already")
            told = "already" if found else "missing"
        status[row["item_id"], row["target"]] = told
    table: dict[str, Any] = {}
    for target, parts in shares.items():
        for layer, items in parts:
            states = [status.get((item.item_id, target), "missing") for item in items]
            counts = {"planned": len(items), "done": states.count("warmed")}
            counts |= {s: states.count(s) for s in ("already", "failed", "skipped", "missing")}
            warm = counts["done"] + counts["already"]
            table.setdefault(layer.name, {})[target] = {
                **counts,
                "completion": warm / len(items),
            }
    return table


def costs(done: Sequence[Done], layers: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what each layer took on each target, in the order of `layers`."""
    found: dict[str, dict[str, Any]] = {}
    for layer in layers:
        took = {d.target: d.costs[layer].facts() for d in done if layer in d.costs}
        if took:
            found[layer] = took
    return found


def abilities(done: Sequence[Done]) -> dict[str, dict[str, Any]]:
    """Return by model host what it can do, found from what it answered."""
    return {d.target: asdict(d.can) for d in done if d.can is not None}


def unavailable(done: Sequence[Done]) -> list[dict[str, str]]:
    """Return the targets that were given up or that others needed, each with its reason."""
    down = {d.target: d.unavailable for d in done if d.unavailable}
    down |= {target: reason for d in done for target, reason in d.lacked.items()}
    return [{"target": target, "reason": reason} for target, reason in sorted(down.items())]


def not_ready(done: Sequence[Done], table: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the layers that are not resident as planned and should be, by target.

    They are those that others need, and those of which nothing is warm anywhere because no host
    serves their models.

    Args:
        done: What the workers did.
        table: What `completion` returns.
    """
    reasons = {(d.target, layer): reason for d in done for layer, reason in d.not_ready.items()}
    for layer, targets in table.items():
        if any(counts["completion"] for counts in targets.values()):
            continue
        for d in done:
            if names := sorted(name for where, name in d.unserved if where == layer):
                reasons[d.target, layer] = f"the host does not serve {_quoted(names)}"
    return [
        {"target": target, "layer": layer, "reason": reason}
        for (target, layer), reason in reasons.items()
    ]


def notes(done: Sequence[Done], homeless: Sequence[str]) -> tuple[str, ...]:
    """Return sentences for the user on targets that did not get everything."""
    said = [
        f"target '{d.target}' was given up: {d.unavailable}; its receipts are kept, "
        "the same command with `--resume` goes on from there"
        for d in done
        if d.unavailable
    ]
    said += [
        f"some items of target '{d.target}' need target '{target}', which does not answer: "
        f"{reason}; the same command with `--resume` tries them again"
        for d in done
        for target, reason in d.lacked.items()
    ]
    said += [
        f"target '{d.target}' is not ready: {layer}: {reason}; what needs it was not warmed there"
        for d in done
        for layer, reason in d.not_ready.items()
    ]
    said += [
        f"the warm-up window ended before everything was warmed on target '{d.target}': what is "
        "missing has no receipt, and the same command with `--resume` warms it"
        for d in done
        if d.window_over
    ]
    said += [
        f"target '{d.target}' can't have {count:,} of layer {layer}: {reason}"
        for d in done
        for (layer, reason), count in d.skipped.items()
    ]
    said += [note for d in done for note in _unserved(d)]
    said += [note for d in done for note in _failed(d)]
    said += [note for d in done for note in d.notes]
    said += [
        f"target '{d.target}' is less able than others: {'; '.join(d.can.lacks())}"
        for d in done
        if d.can is not None and d.can.lacks()
    ]
    said += [f"layer {layer} was left out: no target can take it" for layer in homeless]
    return tuple(said)


def _unserved(done: Done) -> list[str]:
    """Return a sentence for each model or adapter that a host does not serve, with the remedy."""
    serves = f"it serves {_quoted(done.serves)}. " if done.serves else ""
    layers: dict[str, list[str]] = {}
    for (layer, name), count in done.unserved.items():
        layers.setdefault(name, []).append(f"{count:,} of layer {layer}")
    return [
        f"target '{done.target}' does not serve '{name}', and can't have {' and '.join(parts)}: "
        f"{serves}Where it serves the same under another name, give it in `targets` the line "
        f"`models: {{{name}: NAME}}`"
        for name, parts in layers.items()
    ]


def _failed(done: Done) -> list[str]:
    """Return a sentence for each of the commonest reasons why items failed."""
    # Where the target was given up, that has been said.
    reasons = [(why, n) for why, n in done.failed.most_common() if why[1] != done.unavailable]
    said = [
        f"target '{done.target}': {count:,} of layer {layer} failed: {reason}"
        for (layer, reason), count in reasons[:_REASONS]
    ]
    if rest := sum(count for _, count in reasons[_REASONS:]):
        said.append(f"target '{done.target}': {rest:,} more failed, as their receipts say")
    return said


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


async def without_search(targets: Sequence[Target], shares: Shares) -> tuple[str, ...]:
    """Say where a layer that serves similar questions can serve equal ones only."""
    said = []
    for target in targets:
        semantic = [layer.name for layer, _ in shares[target.name] if layer.match == "semantic"]
        if not (semantic and isinstance(target, RedisStore)):
            continue
        try:
            if not await target.has_search():
                said.append(
                    f"target '{target.name}' has no search module: {', '.join(semantic)} serve "
                    "equal questions there and no similar ones, so fewer hits than planned"
                )
        except TargetUnavailable:
            continue  # it is among those given up
    return tuple(said)
