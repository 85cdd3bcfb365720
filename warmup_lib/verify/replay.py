"""Later traffic against the live targets: what an application would find there."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from warmup_lib.errors import TargetUnavailable
from warmup_lib.layers.base import Context, Layer, Lookup, Match
from warmup_lib.layers.serving import unserved
from warmup_lib.stage import Progress
from warmup_lib.targets.base import Target
from warmup_lib.verify.crowding import Crowding
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
        control: By target: requests also looked up where nothing was ever warmed (`asked`), and
            those of them that were served (`hits`): any means that the measurement is wrong.
        unserved: Requests for adapters that no host serves, which are not sampled, and sampled
            ones that no host could be asked.
        lost: Sampled requests with a planned head that was not found warm.
        uncrowded: Requests that were not sent cold too, for want of room in a host's cache.
    """

    requests: pa.Table
    rows: list[Row] = field(default_factory=list)
    others: int = 0
    control: dict[str, dict[str, int]] = field(default_factory=dict)
    unserved: int = 0
    lost: int = 0
    uncrowded: int = 0

    @property
    def control_asked(self) -> int:
        """Control requests on all targets."""
        return sum(one["asked"] for one in self.control.values())

    @property
    def control_hits(self) -> int:
        """Control requests that were served, on all targets."""
        return sum(one["hits"] for one in self.control.values())

    def controlled(self, target: Target, matches: Sequence[Match]) -> None:
        """Count control requests."""
        counts = self.control.setdefault(target.name, {"asked": 0, "hits": 0})
        counts["asked"] += sum(match.asked for match in matches)
        counts["hits"] += sum(match.hit for match in matches)


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
        result.controlled(target, matches)
    return result


async def on_hosts(
    layer: Layer,
    targets: Sequence[Target],
    requests: pa.Table,
    context: Context,
    heads: Collection[str],
    resident: Mapping[str, Collection[str]],
    room: Mapping[str, int],
    down: dict[str, str],
    progress: Progress,
) -> Replayed:
    """Send a sample to the hosts, one request at a time, some of them also cold.

    Tenants, planned and unplanned heads, and hours have the shares that they have in the window.

    A cold request is the same one under a salt of its own, sent to the same host before or after
    the warm one in turn, so that neither gains from its place. One request at a time keeps the
    first token clean. Hosts take turns; one that stops answering gets no more. No more are sent
    cold than a host's cache takes in beside what is measured.

    Args:
        layer: A layer on model hosts.
        targets: The hosts.
        requests: Rows of `requests`, in order of time.
        context: What the layer needs.
        heads: Digests of the planned heads.
        resident: Item ids of the plan that were proven warm, by target. A hit on anything else
            is not its merit: the probe, or the sample itself, made that head warm.
        room: Tokens by host that it takes in before it drops items of the plan; hosts that are
            not named take any number.
        down: Hosts that did not answer, with the reason; more are added.
        progress: Told how many requests are done.
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
    asking = _Asking(layer, targets, context, down, Crowding(room, sample.num_rows))
    paired = set(spread(sample.num_rows, settings.cold_sample))
    sent: list[int] = []
    for number, lookup in enumerate(lookups(sample)):
        if not asking.alive():
            break
        found = await (
            asking.both(lookup, number) if number in paired else asking.warm(lookup, number)
        )
        progress(f"replay {layer.name}", number + 1, sample.num_rows)
        if found is None:
            result.unserved += 1
            continue
        sent.append(number)
        ours = resident.get(found.target.name, ())
        _collect(result, layer, found.target, take(sample, [number]), [found.warm], ours)
        result.lost += lookup.head_digest in heads and not found.warm.hit
        result.uncrowded += found.uncrowded
        if found.cold is not None:
            result.rows[-1]["cold_ttft_ms"] = found.cold.ttft_ms
            result.controlled(found.target, [found.cold])
    result.requests = take(sample, sent)
    return result


@dataclass(frozen=True)
class _Found:
    """What one host answered to a request, and to the same one where nothing was warmed."""

    target: Target
    warm: Match
    cold: Match | None = None
    uncrowded: bool = False


class _Asking:
    """Sends requests to hosts in turn, as long as they answer."""

    def __init__(
        self,
        layer: Layer,
        targets: Sequence[Target],
        context: Context,
        down: dict[str, str],
        crowding: Crowding,
    ) -> None:
        self._layer = layer
        self._targets = targets
        self._context = context
        self._cold = in_control(context)
        self._down = down
        self._crowding = crowding
        self._pairs = 0

    def alive(self) -> list[Target]:
        """Return the hosts that answered so far."""
        return [target for target in self._targets if target.name not in self._down]

    async def warm(self, lookup: Lookup, number: int) -> _Found | None:
        """Ask the first host that can serve a request; None: none can."""
        for target in self._turns(number):
            if warm := await self._ask(lookup, target, self._context):
                return _Found(target, warm)
        return None

    async def both(self, lookup: Lookup, number: int) -> _Found | None:
        """Ask the first host that can serve it twice; each host gets both orders in turn.

        One whose cache takes in no more cold requests is asked once.
        """
        cold_first = self._pairs % 2 == 0
        turns = self._turns(self._pairs // 2)
        self._pairs += 1
        for target in turns:
            if not self._crowding.allows(target.name, number):
                if once := await self._ask(lookup, target, self._context):
                    return _Found(target, once, uncrowded=True)
                continue
            contexts = [self._cold, self._context] if cold_first else [self._context, self._cold]
            answers = [await self._ask(lookup, target, context) for context in contexts]
            cold, warm = answers if cold_first else reversed(answers)
            if warm is not None:
                return _Found(target, warm, cold)
        return None

    def _turns(self, number: int) -> list[Target]:
        alive = self.alive()
        return [alive[(number + k) % len(alive)] for k in range(len(alive))]

    async def _ask(self, lookup: Lookup, target: Target, context: Context) -> Match | None:
        """Return a host's answer; None: it can't serve the request, or is down."""
        if target.name in self._down:
            return None
        try:
            [match] = await self._layer.find([lookup], target, context)
        except TargetUnavailable as error:
            self._down[target.name] = error.reason
            return None
        if match.ttft_ms is None:
            return None
        self._crowding.took(target.name, match, cold=context.control is not None)
        return match


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
