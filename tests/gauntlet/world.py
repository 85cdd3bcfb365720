"""The gauntlet's world: a real Redis and two real hosts, a history, and a plan that is warm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import redis
import yaml

from tests.apply import killed
from tests.gauntlet.corpus import Ask, Corpus, compose
from warmup_lib import pipeline, stack
from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.config import Config, key_secret, load_config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.keys import Keys, Request
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem
from warmup_lib.places import Places
from warmup_lib.stack import process
from warmup_lib.stack.state import Service

SHORT_TTL_S = 6


class World:
    """All that the gauntlet runs on.

    Args:
        home: Its own home of the stack.
        artifacts: Programs and model, shared.
        seed: Of all that is drawn.
    """

    def __init__(self, home: Path, artifacts: Path, seed: int) -> None:
        self.home = home
        self._artifacts = artifacts
        self.corpus: Corpus = compose(seed)
        self.settings = home / "warmup.yaml"
        self.start()
        corpus = self.corpus
        settings: dict[str, Any] = {
            "lake": f"file://{home}/lake",
            "layers": {
                "weights": {"enabled": False},
                "retrieval": {"enabled": False},
                "responses": {"items": len(corpus.planned), "generate": 0},
            },
            "apply": {"batch": 4, "concurrency": 4},
        }
        self.settings.write_text(yaml.safe_dump(settings))
        self.day = (datetime.now(UTC) - timedelta(days=1)).date()
        self.plan_id = self._plan()

    def start(self) -> None:
        """Start what does not run."""
        state = stack.up(self.home, hosts=2, progress=lambda _: None, artifacts=self._artifacts)
        assert len(state.hosts) == 2, state.skipped

    @property
    def config(self) -> Config:
        return load_config(self.settings)

    @property
    def lake(self) -> Lake:
        return Lake(self.config.lake)

    @property
    def hosts(self) -> list[Service]:
        return list(stack.status(self.home).hosts)

    @cached_property
    def keys(self) -> Keys:
        return pipeline.open_keys(self.config)

    @cached_property
    def secret(self) -> bytes:
        return key_secret(self.config)

    @property
    def model(self) -> Path:
        """Folder of the hosts' model."""
        return self._artifacts / "model"

    @cached_property
    def redis_url(self) -> str:
        service = stack.status(self.home).redis
        assert service is not None
        return service.url

    @cached_property
    def redis(self) -> Any:
        return redis.Redis.from_url(self.redis_url)

    @cached_property
    def encoder(self) -> Any:
        return open_encoder(self.config)

    @cached_property
    def places(self) -> Places:
        items = read_items(self.lake, self.plan_id)
        context = open_context(self.lake, self.plan_id, self.config, self.keys, items, ())
        return Places(self.keys, context.vectors.encoder, context.adapters)

    # -- history and plan ------------------------------------------------------------------------

    def _plan(self) -> str:
        log = self.home / "history.jsonl"
        rows = self.corpus.history(self.day)
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pipeline.ingest(self.config, [log], "jsonl")
        pipeline.build_day(self.config, self.day.isoformat())
        made: str = pipeline.plan(self.config, self.day.isoformat()).facts["plan_id"]
        return made

    def planned(self, layer: str) -> list[PlanItem]:
        """Return the plan's items of a layer, in order."""
        return [item for item in read_items(self.lake, self.plan_id) if item.layer == layer]

    def answer_key(self, ask: Ask) -> str:
        """Return where the answer of a request lies."""
        return self.keys_of(ask)[0]

    def keys_of(self, ask: Ask) -> tuple[str, str, str]:
        """Return where answer, vector and system prompt of a request lie."""
        request = request_of(ask)
        identity = self.keys.identity(request)
        return (
            self.places.answer(request, identity.response),
            self.places.embedding(ask.tenant, identity.text),
            self.places.system_prompt(request, identity.head),
        )

    def digest(self, ask: Ask) -> str:
        """Return the digest in the key of the answer to a question."""
        return self.keys.identity(request_of(ask)).response

    def there(self, asks: Iterable[Ask]) -> list[Ask]:
        """Return those whose answers are on the Redis now."""
        return [ask for ask in asks if self.redis.exists(self.answer_key(ask))]

    # -- applying, with what goes wrong there ----------------------------------------------------

    def shorten(self, digests: Iterable[str]) -> None:
        """Give answers a short lifetime, in the plan."""
        partition = {"plan_id": self.plan_id}
        manifest = self.lake.manifest("plan", partition)
        assert manifest is not None
        rows = self.lake.read("plan", partition)
        short = pc.and_(
            pc.equal(rows["layer"], "responses"),
            pc.is_in(rows["key_digest"], value_set=pa.array(list(digests))),
        )
        ttl = pc.if_else(short, pa.scalar(SHORT_TTL_S, pa.int64()), rows["ttl_s"])
        rows = rows.set_column(rows.schema.get_field_index("ttl_s"), "ttl_s", ttl)
        self.lake.replace("plan", partition, rows, manifest.meta)

    def apply(self, *layers: str, target: str | None = None) -> Mapping[str, Any]:
        """Apply layers, on all targets or on one."""
        targets = [target] if target else None
        report = pipeline.apply(self.config, self.plan_id, layers=layers, targets=targets)
        return report.facts

    def apply_until_killed(self, layer: str, target: str, receipts: int) -> None:
        """Apply a layer in a process that is killed once so many receipts are written."""
        settings = yaml.safe_load(self.settings.read_text())
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        arguments = [json.dumps(settings), self.plan_id, str(receipts), layer, target]
        ended = subprocess.run(
            [sys.executable, killed.__file__, *arguments],
            env=environment,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        assert ended.returncode == -9

    def applied(self, layer: str, target: str) -> dict[str, str]:
        """Return the status of each item's receipt on a target, by the digest in its key."""
        statuses = {
            row["item_id"]: row["status"]
            for row in self.lake.read("receipts", {"plan_id": self.plan_id}).to_pylist()
            if row["target"] == target
        }
        items = self.planned(layer)
        return {i.key_digest: statuses[i.item_id] for i in items if i.item_id in statuses}

    def keep_other_data(self) -> None:
        """Put into the Redis what others keep in theirs: jobs, forms, pages."""
        for number in range(20):
            job = {"data": "x", "result": "y", "status": "finished"}
            self.redis.hset(f"rq:job:{uuid.UUID(int=number)}", mapping=job)
            form = {"question": "How are you?", "answer": "fine"}
            self.redis.hset(f"survey:{number}", mapping=form)
            self.redis.set(f"cache:page:{number}", '{"result": "<html>", "status": 200}')

    # -- what breaks later -----------------------------------------------------------------------

    def evict(self, share: float) -> None:
        """Have the Redis drop about a share of its keys by its own policy.

        Its room shrinks little by little: what is freed is not counted at once.
        """
        left = (1 - share) * self.redis.dbsize()
        self.redis.config_set("maxmemory-policy", "allkeys-random")
        while self.redis.dbsize() > left:
            used = self.redis.info("memory")["used_memory"]
            self.redis.config_set("maxmemory", used - 50_000)
            time.sleep(0.02)
            self.redis.config_set("maxmemory", 0)

    def kill(self, host: Service) -> None:
        """End a host's process."""
        process.stop(self.home, host.name, host.pid)


def request_of(ask: Ask) -> Request:
    """Return a request as keys are made of it."""
    row = ask.row("", datetime.now(UTC))
    return Request(
        ask.tenant,
        row["model"],
        ask.prompt,
        ask.system_prompt,
        model_revision=row["model_revision"],
        adapter=ask.adapter,
        params=ask.fields.get("params", {}),
    )
