"""What is measured: the sample log in a lake, a plan, and an embedded stack of its own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from bench.effect.traffic import Ask, asks_of
from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib import pipeline, stack
from warmup_lib.apply import stage as applying
from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.config import Config, warmup_home
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.registry import LAYERS
from warmup_lib.stage import StageReport
from warmup_lib.targets.base import Target
from warmup_lib.targets.chat import PROBE_TEXT, WARM_TEXT, Head, common_prefix
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.open import close_all, open_targets
from warmup_lib.verify.window import from_lake

LOADED = ("weights", "adapters")
"""Layers that hold for as long as the host's process lives."""


@dataclass(frozen=True)
class Opened:
    """The targets and what the layers need, open."""

    http: httpx.AsyncClient
    targets: Sequence[Target]
    context: Context

    @property
    def host(self) -> ModelHost:
        """The model host."""
        return next(t for t in self.targets if isinstance(t, ModelHost))

    @property
    def store(self) -> Target:
        """The Redis."""
        return next(t for t in self.targets if t.kind == "redis")


class Bed:
    """A folder with log, lake and stack; what is there already is used.

    Args:
        out: The folder.
        scale: Size of the log.
    """

    def __init__(self, out: Path, scale: float) -> None:
        self._out = out
        self._log = out / "log"
        self._scale = scale
        # Programs and model are where the stack of this checkout has them; servers, state and key
        # secret are in a home of its own.
        self._artifacts = warmup_home()
        self.home = out / "stack"
        os.environ["WARMUP_HOME"] = str(self.home)
        # The hosts are measured here: of them verification needs no more than a small sample.

    @cached_property
    def config(self) -> Config:
        """The settings: the product's own, with the sample's documents; composes the log first."""
        if not (self._log / "manifest.json").exists():
            generate(self._log, Shipped(), scale=self._scale)
        documents = [
            {"tenant": place.name, "path": str(place)}
            for place in sorted((self._log / "docs").iterdir())
        ]
        settings = {
            "lake": (self._out / "lake").as_uri(),
            # The hosts are measured here: of them verification need not look at more than a few.
            "verify": {"host_sample": 10, "cold_sample": 1},
            "layers": {
                # Answers that the log lacks take minutes to generate and are nothing measured.
                "responses": {"generate": 0},
                "retrieval": {"documents": documents},
            },
        }
        return Config.model_validate(settings)

    # -- log and plan ----------------------------------------------------------------------------

    def prepare(self) -> dict[str, Any]:
        """Plan after the log's last day but one and return what the plan says."""
        config = self.config
        days = sorted(self._log.glob("requests-*.jsonl.gz"))
        last, later = (path.name.removeprefix("requests-")[:10] for path in days[-2:])
        pipeline.ingest(config, days[:-1], "jsonl")
        pipeline.build_day(config, last)
        facts = pipeline.plan(config, last).facts
        pipeline.ingest(config, days[-1:], "jsonl")
        return {
            "plan_id": facts["plan_id"],
            "plan_day": last,
            "day": later,
            "items": dict(facts["items"]),
        }

    @cached_property
    def plan_id(self) -> str:
        """The plan."""
        return pipeline.plan_named(self.config, "latest")

    @cached_property
    def items(self) -> list[PlanItem]:
        """Its items."""
        return read_items(pipeline.open_lake(self.config), self.plan_id)

    @cached_property
    def host_layers(self) -> list[str]:
        """Its layers on a model host, in order."""
        held = {item.layer for item in self.items}
        return [n for n, la in LAYERS.items() if n in held and la.target_kind == "host"]

    @property
    def heads(self) -> list[PlanItem]:
        """The planned heads, the most valuable first."""
        return sorted((i for i in self.items if i.layer == "prefixes"), key=lambda i: i.rank)

    def asks(self, day: str) -> tuple[list[Ask], int]:
        """Return the day's requests that the stack can serve, and how many it can't.

        A host serves the base model and the adapters of the plan.
        """
        rows = from_lake(pipeline.open_lake(self.config), day, "").rows
        served = {None, *(i.adapter for i in self.items if i.layer == "adapters")}
        asks = asks_of(rows)
        kept = [ask for ask in asks if ask.lookup.adapter in served]
        return kept, len(asks) - len(kept)

    # -- stack -----------------------------------------------------------------------------------

    def ensure(self) -> None:
        """Have Redis and one model host run."""
        state = stack.up(self.home, progress=_quiet, artifacts=self._artifacts)
        if not state.hosts:
            raise RuntimeError(f"there is no model host to measure: {state.skipped}")

    def restart(self) -> float:
        """Stop everything, start it anew and return how long that took, in seconds."""
        begun = time.perf_counter()
        stack.down(self.home)
        self.ensure()
        return time.perf_counter() - begun

    def load(self) -> None:
        """Have the host load its adapters, where the plan has any and it has not."""
        if "adapters" in self.host_layers:
            self.apply(["adapters"])

    def down(self) -> None:
        """Stop everything."""
        stack.down(self.home)

    # -- warming ---------------------------------------------------------------------------------

    def keys(self, word: str | None = None) -> Keys:
        """Return the lake's key builder, or one under a secret of its own made from a word."""
        return pipeline.open_keys(self.config) if word is None else Keys(_secret(word))

    def apply(
        self, layers: Sequence[str] | None = None, *, word: str | None = None, resume: bool = False
    ) -> dict[str, Any]:
        """Warm the plan as the product does and return its completion and seconds.

        Args:
            layers: Only these.
            word: Warm under salts of its own, made from this word: nothing is cached under them.
            resume: Leave what is warm by the receipts.
        """
        if word is None:
            report = pipeline.apply(self.config, self.plan_id, layers=layers, resume=resume)
        else:
            report = self._apply_anew(layers, word)
        if report.facts["unavailable"]:
            raise RuntimeError(f"warming failed: {report.facts['unavailable']}")
        return {
            "seconds": report.seconds,
            "completion": {
                layer: {name: part[name] for name in ("planned", "done", "already", "completion")}
                for layer, targets in report.facts["completion"].items()
                for part in targets.values()
            },
        }

    def _apply_anew(self, layers: Sequence[str] | None, word: str) -> StageReport:
        lake = pipeline.open_lake(self.config)
        run = applying.run(lake, self.plan_id, self.config, self.keys(word), layers=layers)
        return asyncio.run(run)

    @asynccontextmanager
    async def opened(self, word: str | None = None) -> AsyncIterator[Opened]:
        """Open the running targets, for live requests under the keys that `apply` warmed under."""
        targets = open_targets(self.config)
        [url] = [host.url for host in stack.status(self.home).hosts]
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        try:
            async with httpx.AsyncClient(
                base_url=url, timeout=None, limits=limits, trust_env=False
            ) as http:
                context = open_context(
                    pipeline.open_lake(self.config),
                    self.plan_id,
                    self.config,
                    self.keys(word),
                    self.items,
                    targets,
                )
                yield Opened(http, targets, context)
        finally:
            await close_all(targets)

    async def sizes(self, asks: Sequence[Ask]) -> tuple[dict[str, int], int, int | None]:
        """Return the tokens of each head by digest, a cache block's, and the whole cache's.

        Tokens are counted as the host counts them, under the base model: adapters share it.
        """
        heads = {a.lookup.head_digest: a.lookup for a in asks} | {
            i.key_digest: i for i in self.heads
        }
        async with self.opened() as opened:
            can = await opened.host.capabilities()
            counts = {
                digest: await _count(opened, Head(one.model, one.system_prompt, one.tools))
                for digest, one in heads.items()
            }
        return counts, can.block_size, can.kv_tokens


async def _count(opened: Opened, head: Head) -> int:
    """Return how many tokens all requests with this head begin with."""
    rendered = []
    for text in (WARM_TEXT, PROBE_TEXT):
        body = {"model": head.model, "messages": head.messages(text), "tools": head.tool_list()}
        response = await opened.http.post("/tokenize", json=body)
        rendered.append(response.raise_for_status().json()["tokens"])
    return common_prefix(*rendered)


def _secret(word: str) -> bytes:
    return hashlib.sha256(word.encode()).digest()


def _quiet(_line: str) -> None:
    """Take what the stack says about its start."""
