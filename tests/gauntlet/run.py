"""The run of the gauntlet: what is sent when, and what breaks in between."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gauntlet.confusion import Confusion, compare
from tests.gauntlet.corpus import HEADS, RARE, TENANTS, Ask
from tests.gauntlet.gateway import Gateway
from tests.gauntlet.shots import EACH, Armoury, Shot, heads_of, of, write_labels
from tests.gauntlet.traps import cli, doctor, sick
from tests.gauntlet.world import World, request_of
from warmup_lib.causes import Cause

_KEYED = ("responses", "embeddings", "embeddings.l1")
"""Where a request is looked up by a key, in the order of `World.keys_of`."""

Labels = dict[str, dict[str, Cause]]

_DRAWN = EACH + 4
"""Answers that are refused, or short-lived: a few of them are not reached by the apply."""

_TAIL = EACH + 16
"""Answers that the killed apply leaves, a few of which it was just writing."""

_HEADS = 17
"""System prompts that the second host gets before the apply is killed: about half."""


@dataclass
class Gauntlet:
    """One run.

    Attributes:
        world: The stack with its plan.
        seed: Of the draw.
        labels: Request -> layer -> true cause, of what was sent so far.
        log: What the gateway logged.
        examined: What `warmup doctor` said of sound traffic, and of each trap by itself: its exit
            code, and its answer.
    """

    world: World
    seed: int
    labels: Labels = field(default_factory=dict)
    examined: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._armoury = Armoury(self._rng, self.world.corpus.new)
        self._gateway = Gateway(self.world, self.world.home / "requests.jsonl")

    # -- before ----------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Apply the plan with what goes wrong there: cut short, refused, short-lived."""
        world, armoury = self.world, self._armoury
        one, two = (host.name for host in world.hosts)
        free = [ask for ask in world.corpus.warm if not ask.adapter]
        drawn = armoury.some(free[len(free) // 4 :], 2 * _DRAWN)
        self._refused, self._brief_lived = drawn[:_DRAWN], drawn[_DRAWN:]
        world.shorten(world.digest(ask) for ask in self._brief_lived)
        world.apply("embeddings", "adapters")
        for ask in self._refused:
            world.redis.sadd(world.answer_key(ask), "not a hash")
        kept = len(world.planned("responses")) - _TAIL
        world.apply_until_killed("responses", "redis", kept)
        for ask in self._refused:
            world.redis.delete(world.answer_key(ask))
        world.apply("prefixes", target=one)
        world.apply_until_killed("prefixes", two, _HEADS)

    async def send(self, shots: Iterable[Shot], prefix: str) -> None:
        """Send shots one by one, in their order."""
        for shot in shots:
            ident = f"{prefix}{len(self._gateway.rows)}"
            self.labels[ident] = dict(shot.label)
            await self._gateway.serve(shot.ask, ident, shot.wrong, shot.headers)

    def run(self) -> None:
        """Send everything."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        try:
            await self._sound()
            for trap in ("tokenisation", "kv_length", "tenant", "bypass", "key_dimensions"):
                await self._trap(trap)
            await self._mixed()
            await self._restarted()
            await self._evicted()
            await self._flushed()
        finally:
            await self._gateway.close()
        self.log = self._gateway.write()

    # -- phases ----------------------------------------------------------------------------------

    async def _sound(self) -> None:
        """Healthy traffic only, with all that is odd about it."""
        world, armoury = self.world, self._armoury
        resident = world.there(world.corpus.planned)
        odd = [Shot(ask) for ask in world.there(world.corpus.odd) for _ in range(2)]
        hosted = armoury.on_host(self._on(world.hosts[0].name)[:6], world.hosts[0].name, None)
        calls = armoury.callers(resident)
        world.keep_other_data()
        shots = [*armoury.healthy(resident, 80), *odd, *hosted, *calls]
        await self.send(armoury.shuffled(shots), "s")
        everything = ["--host", world.hosts[0].url, "--redis", world.redis_url]
        everything += ["--model-dir", str(world.model)]
        await self._examine("sound", self._gateway, *everything)

    async def _trap(self, trap: str) -> None:
        """Traffic with one trap in it, of which the gauntlet's own log knows nothing."""
        world = self.world
        gateway = Gateway(world, world.home / f"{trap}.jsonl")
        asks = self._armoury.shuffled(world.there(world.corpus.warm))
        try:
            for n, shot in enumerate(sick(trap, asks, world.hosts[0].name, self._rng)):
                await gateway.serve(shot.ask, f"{trap}{n}", shot.wrong, shot.headers)
        finally:
            await gateway.close()
        await self._examine(trap, gateway)

    async def _examine(self, what: str, gateway: Gateway, *arguments: str) -> None:
        log = str(gateway.write())
        self.examined[what] = await asyncio.to_thread(
            doctor, self.world, "--requests", log, *arguments
        )

    async def _mixed(self) -> None:
        """All that needs no time of its own."""
        world, armoury = self.world, self._armoury
        one, two = (host.name for host in world.hosts)
        applied = world.applied("responses", "redis")
        resident = world.there(world.corpus.planned)
        # What was written just before the kill is there without a receipt.
        left = [a for a in world.corpus.planned if world.digest(a) not in applied]
        left = [ask for ask in left if ask not in resident]
        away = [ask for ask in self._on(one) if self._head_digest(ask) not in self._on_two()]
        shots = [
            *of(Cause.UNSEEN, armoury.new()),
            *of(Cause.BELOW_BUDGET, armoury.some(world.corpus.cold)),
            *of(Cause.LEFT_OUT, armoury.some(world.corpus.mute)),
            *of(Cause.NOT_APPLIED, armoury.some(left)),
            *of(Cause.APPLY_FAILED, self._failed(applied)[:EACH]),
            *of(Cause.EXPIRED, self._expired(applied)[:EACH]),
            *self._near(Cause.BELOW_THRESHOLD, world.corpus.paraphrases, resident),
            *self._near(Cause.GUARD_REFUSED, world.corpus.variants, resident),
            *armoury.keys(resident),
            *armoury.bypasses(resident),
            *armoury.brief(one),
            *armoury.on_host(armoury.some(away), two, Cause.OTHER_HOST),
            *armoury.healthy(resident, 40),
        ]
        await self.send(armoury.shuffled(shots), "m")

    def _failed(self, applied: dict[str, str]) -> list[Ask]:
        return [a for a in self._refused if applied.get(self.world.digest(a)) == "failed"]

    def _expired(self, applied: dict[str, str]) -> list[Ask]:
        return [a for a in self._brief_lived if applied.get(self.world.digest(a)) == "warmed"]

    def _near(self, cause: Cause, asks: list[Ask], resident: list[Ask]) -> list[Shot]:
        """Return questions near to ones that are warm.

        Why their own vectors are not there is not judged: the text is new, and the like of one
        that is known.
        """
        held = {(ask.tenant, ask.prompt) for ask in resident}
        fitting = [ask for ask in asks if (ask.tenant, ask.near) in held]
        return [Shot(ask, {"responses": cause}) for ask in self._armoury.some(fitting)]

    async def _evicted(self) -> None:
        """The Redis drops a part of what it holds."""
        world, armoury = self.world, self._armoury
        applied = world.applied("responses", "redis")
        before = [a for a in world.corpus.planned if applied.get(world.digest(a)) == "warmed"]
        before = world.there(before)
        had = {id(ask): self._places(ask) for ask in before}
        world.evict(0.3)
        for ask in armoury.some(world.there(before), EACH // 2):
            world.redis.delete(world.answer_key(ask))  # or somebody else makes room
        left = {id(ask): self._places(ask) for ask in before}
        shots = [
            Shot(ask, dict.fromkeys(had[id(ask)] - left[id(ask)], Cause.EVICTED)) for ask in before
        ]
        # Whose answers are still there show that it was no flush, even where chance took all of
        # the system prompts.
        lost = [shot for shot in shots if "responses" not in left[id(shot.ask)]]
        still = [shot for shot in shots if "responses" in left[id(shot.ask)]]
        assert len(lost) >= EACH <= len(still), (len(lost), len(still))
        mixed = [*armoury.shuffled(lost)[:EACH], *armoury.shuffled(still)[:20]]
        await self.send(armoury.shuffled(mixed), "e")

    def _places(self, ask: Ask) -> set[str]:
        """Return the layers that have something for a request now."""
        keys = zip(_KEYED, self.world.keys_of(ask), strict=True)
        return {layer for layer, key in keys if self.world.redis.exists(key)}

    async def _restarted(self) -> None:
        """A host ends, is asked while it starts, and is back with nothing."""
        world, armoury = self.world, self._armoury
        two = world.hosts[1]
        warm = self._on(two.name)
        world.kill(two)
        starting = threading.Thread(target=world.start)
        starting.start()
        early = armoury.on_host(armoury.some(warm), two.name, Cause.HOST_NOT_READY)
        while starting.is_alive() and early:
            if len(world.hosts) == 2:
                await self.send([early.pop()], "r")
            await asyncio.sleep(0.5)
        await asyncio.to_thread(starting.join)
        assert not early, "the host was ready too soon"
        begun = len(self._gateway.rows) - EACH
        back = armoury.on_host(armoury.some(warm), two.name, Cause.HOST_RESTARTED)
        await self.send(armoury.shuffled(back), "b")
        rows = self._gateway.rows[begun:]
        await self._examine("out_of_step", Gateway(world, world.home / "early.jsonl", rows))

    async def _flushed(self) -> None:
        """Somebody empties the Redis."""
        world, armoury = self.world, self._armoury
        applied = world.applied("responses", "redis")
        there = [a for a in world.corpus.planned if applied.get(world.digest(a)) == "warmed"]
        asks = armoury.some(world.there(there), 2 * EACH)
        shots = [Shot(ask, dict.fromkeys(self._places(ask), Cause.FLUSHED)) for ask in asks]
        world.redis.flushall()
        await self.send(shots, "f")

    # -- heads on hosts --------------------------------------------------------------------------

    def _on(self, host: str) -> list[Ask]:
        """Return a request for each system prompt that was warmed on a host, in a drawn order."""
        world = self.world
        warmed = world.applied("prefixes", host)
        heads = [*heads_of(TENANTS, HEADS), *heads_of(RARE, 1)]
        held = [ask for ask in heads if warmed.get(self._head_digest(ask)) == "warmed"]
        self._rng.shuffle(held)
        return held

    def _on_two(self) -> dict[str, str]:
        return self.world.applied("prefixes", self.world.hosts[1].name)

    def _head_digest(self, ask: Ask) -> str:
        return self.world.keys.identity(request_of(ask)).head

    # -- afterwards ------------------------------------------------------------------------------

    def judge(self) -> Confusion:
        """Explain what was sent, and compare with the labels, which lie in a file of their own."""
        world = self.world
        labels = world.home / "labels.json"
        write_labels(labels, self.labels)
        options = ["--plan", world.plan_id, "--requests", str(self.log)]
        code, told = cli("explain", "--config", str(world.settings), *options)
        assert code == 0, told
        partition = {"plan_id": world.plan_id, "window": told["window"]}
        rows = world.lake.read("causes", partition).to_pylist()
        return compare(json.loads(labels.read_text()), rows)
