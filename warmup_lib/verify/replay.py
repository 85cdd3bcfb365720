"""Later traffic against the live targets: what an application would find there."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from warmup_lib.layers.base import Context, Layer, Lookup, Match
from warmup_lib.layers.serving import unserved
from warmup_lib.stage import Progress
from warmup_lib.targets.base import Target
from warmup_lib.verify.sample import spread, stratified
from warmup_lib.verify.vectors import WindowVectors
from warmup_lib.verify.window import lookups, slices, take

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 256

Row = dict[str, Any]


@dataclass
class Replayed:
    """What replaying showed.

    Attributes:
        requests: Rows of `requests` that were asked: all, or those of the sample that a host could
            be asked.
        rows: Rows of `hits`.
        others: Requests served by an entry that is not of this plan; misses in `rows`.
        control_asked: Requests also looked up where nothing was ever warmed.
        control_hits: Of these, served; anything but 0 means that the measurement is wrong.
        unserved: Requests for adapters that no host serves, which are not sampled, and sampled
            ones that no host could be asked.
        lost: Sampled requests with a planned head that was not found warm.
    """

    requests: pa.Table
    rows: list[Row] = field(default_factory=list)
    others: int = 0
    control_asked: int = 0
    control_hits: int = 0
    unserved: int = 0
    lost: int = 0


def in_control(context: Context) -> Context:
    """Return the same context in a namespace that nothing was ever warmed in."""
    return replace(context, control=uuid.uuid4().hex[:12])


async def on_store(
    layer: Layer,
    target: Target,
    requests: pa.Table,
    context: Context,
    vectors: WindowVectors,
    planned: Collection[str],
    progress: Progress,
    tier: str | None = None,
) -> Replayed:
    """Look up every request, and some of them in a control namespace.

    Args:
        layer: A layer on a Redis.
        target: The Redis.
        requests: Rows of `requests`.
        context: What the layer needs.
        vectors: Vectors of the requests' texts, for a layer that matches by similarity.
        planned: Item ids of the plan; a hit on anything else is not its merit.
        progress: Told how many requests are done.
        tier: The tier of the layer to look in; None: its main items.

    Raises:
        TargetUnavailable: The target does not answer.
    """
    kind = layer.match if tier is None else layer.tiers[tier]
    name = layer.name if tier is None else f"{layer.name} {tier}"

    async def look(piece: pa.Table, context: Context) -> list[Match]:
        asked = _asked(kind, piece, vectors)
        if tier is None:
            return await layer.find(asked, target, context)
        return await layer.find_tier(tier, asked, target, context)

    context = replace(context, planned=frozenset(planned))
    result = Replayed(requests)
    for done, piece in enumerate(slices(requests, _AT_ONCE), 1):
        matches = await look(piece, context)
        _collect(result, layer, target, piece, matches, planned, tier)
        seen = min(done * _AT_ONCE, requests.num_rows)
        progress(f"replay {name} on {target.name}", seen, requests.num_rows)
    control = take(requests, spread(requests.num_rows, context.config.verify.cold_sample))
    for piece in slices(control, _AT_ONCE):
        matches = await look(piece, in_control(context))
        result.control_asked += sum(match.asked for match in matches)
        result.control_hits += sum(match.hit for match in matches)
    return result


async def on_hosts(
    layer: Layer,
    targets: Sequence[Target],
    requests: pa.Table,
    context: Context,
    heads: Collection[str],
    resident: Mapping[str, Collection[str]],
    progress: Progress,
) -> Replayed:
    """Send a sample to the hosts, one request at a time, some of them also cold.

    Tenants, planned and unplanned heads, and hours have the shares that they have in the window.

    A cold request is the same one under a salt of its own, sent before or after the warm one in
    turn, so that neither gains from its place. One request at a time keeps the first token clean.
    Hosts take turns.

    Args:
        layer: A layer on model hosts.
        targets: The hosts.
        requests: Rows of `requests`, in order of time.
        context: What the layer needs.
        heads: Digests of the planned heads.
        resident: Item ids of the plan that were proven warm, by target. A hit on anything else
            is not its merit: the probe, or the sample itself, made that head warm.
        progress: Told how many requests are done.

    Raises:
        TargetUnavailable: A host does not answer.
    """
    settings = context.config.verify
    away = unserved(requests["adapter"], context.config, context.adapters)
    requests = requests.filter(pc.invert(away))
    strata = [
        (row["tenant"], row["head_digest"] in heads)
        for row in requests.select(["tenant", "head_digest"]).to_pylist()
    ]
    sample = take(requests, stratified(strata, settings.host_sample, settings.seed))
    result = Replayed(sample, unserved=pc.sum(away).as_py() or 0)
    paired = set(spread(sample.num_rows, settings.cold_sample))
    cold_context = in_control(context)
    sent: list[int] = []
    for number, lookup in enumerate(lookups(sample)):
        turns = [targets[(number + k) % len(targets)] for k in range(len(targets))]
        cold_first = number in paired and len(result.rows) % 2 == 0
        cold = await _first(layer, lookup, turns, cold_context) if cold_first else None
        warm = await _first(layer, lookup, turns, context)
        if number in paired and not cold_first:
            cold = await _first(layer, lookup, turns, cold_context)
        progress(f"replay {layer.name}", number + 1, sample.num_rows)
        if warm is None:
            result.unserved += 1
            continue
        sent.append(number)
        target, match = warm
        ours = resident.get(target.name, ())
        _collect(result, layer, target, take(sample, [number]), [match], ours)
        result.lost += lookup.head_digest in heads and not match.hit
        if cold is not None:
            result.rows[-1]["cold_ttft_ms"] = cold[1].ttft_ms
            result.control_asked += 1
            result.control_hits += cold[1].hit
    result.requests = take(sample, sent)
    return result


async def _first(
    layer: Layer, lookup: Lookup, targets: Sequence[Target], context: Context
) -> tuple[Target, Match] | None:
    """Ask the first host that can serve the request; None: none can."""
    for target in targets:
        [match] = await layer.find([lookup], target, context)
        if match.ttft_ms is not None:
            return target, match
    return None


def _asked(kind: str, piece: pa.Table, vectors: WindowVectors) -> list[Lookup]:
    asked = lookups(piece)
    if kind == "exact":
        return asked
    known = vectors.of({lookup.text_digest: lookup.prompt for lookup in asked})
    return [replace(lookup, vector=known.get(lookup.text_digest)) for lookup in asked]


def _collect(
    result: Replayed,
    layer: Layer,
    target: Target,
    requests: pa.Table,
    matches: Sequence[Match],
    planned: Collection[str],
    tier: str | None = None,
) -> None:
    columns = requests.select(["request_id", "ts", "tenant", "text_digest"]).to_pylist()
    for request, match in zip(columns, matches, strict=True):
        if not match.asked:
            continue
        ours = match.hit and match.item_id in planned
        result.others += match.hit and not ours
        result.rows.append(
            {
                **request,
                "layer": layer.name,
                "tier": tier,
                "target": target.name,
                "hit": ours,
                "match": match.match if ours else None,
                "similarity": match.similarity if ours else None,
                "item_id": match.item_id if ours else None,
                "prompt_tokens": match.prompt_tokens,
                "cached_tokens": match.cached_tokens,
                "warm_ttft_ms": match.ttft_ms,
                "cold_ttft_ms": None,
                "share": match.share if ours else None,
            }
        )
