"""Two tenants whose names and texts must not get out, and a night of theirs on a real Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import start_http_server

from tests.observe.receiver import Receiver
from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.keys import Request
from warmup_lib.layers.reading import open_cache
from warmup_lib.observe.instruments import using
from warmup_lib.observe.setup import start
from warmup_lib.reader import Found, Reader

TENANTS = ("undercover-acme", "geheimhaus")
WORD = "zebrafish"
"""In every text of the log; nothing that is exported may hold it."""

ASKED = 12
PLAN_DAY, LATER_DAY = "2026-03-16", "2026-03-17"
SYSTEM = f"You answer questions about the {WORD} archive."
_TOPICS = (
    "opening hours on Sundays", "parking permits", "lost library cards", "printing prices",
    "quiet study rooms", "late return fees", "wheelchair access", "guest wifi passwords",
    "rare map scans", "children's story time", "coffee machine repairs", "roof garden tours",
    "night bus routes", "microfilm readers", "poetry prize rules",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """A night that was planned, applied, verified and read.

    Attributes:
        config: The settings.
        plan_id: The plan.
        verified: What verify said.
        found: What the reader found for each later request.
        gateway: host:port where the reader's metrics are.
        receiver: What was pushed.
    """

    config: Config
    plan_id: str
    verified: dict[str, Any]
    found: Sequence[Found]
    gateway: str
    receiver: Receiver


def rows(day: str, topics: range) -> list[dict[str, Any]]:
    """Return a day's log: each tenant asks each topic, earlier topics more often."""
    return [
        {
            "request_id": f"{day}-{tenant}-{topic}-{n}",
            "ts": f"{day}T{8 + n:02d}:{topic:02d}:00+00:00",
            "tenant": tenant,
            "model": "m",
            "prompt": f"What does the {WORD} handbook say about {_TOPICS[topic]}?",
            "system_prompt": SYSTEM,
            "response": f"The {WORD} handbook has a page on {_TOPICS[topic]}.",
            "status": 200,
        }
        for tenant in TENANTS
        for topic in topics
        for n in range(1 + (ASKED - min(topic, ASKED)) // 3)
    ]


@contextmanager
def night(folder: Path, redis_url: str) -> Iterator[World]:
    """Run a night and a day of lookups; the reader's metrics are served meanwhile."""
    later = rows(LATER_DAY, range(4, len(_TOPICS)))
    for day, log in ((PLAN_DAY, rows(PLAN_DAY, range(ASKED))), (LATER_DAY, later)):
        text = "\n".join(json.dumps(row) for row in log)
        (folder / f"{day}.jsonl").write_text(text, encoding="utf-8")
    with Receiver() as receiver:
        config = Config.model_validate(
            {
                "lake": (folder / "lake").as_uri(),
                "targets": [{"kind": "redis", "name": "cache", "url": redis_url}],
                "observe": {"otlp": receiver.url},
            }
        )
        pipeline.ingest(config, [folder / f"{PLAN_DAY}.jsonl"], "jsonl")
        pipeline.build_day(config, PLAN_DAY)
        plan_id = pipeline.plan(config, PLAN_DAY, force=True).facts["plan_id"]
        pipeline.apply(config, plan_id)
        pipeline.ingest(config, [folder / f"{LATER_DAY}.jsonl"], "jsonl")
        verified = pipeline.verify(config, plan_id, day=LATER_DAY).facts
        telemetry = start(config.observe, "warmup-gateway")
        server, thread = start_http_server(0, "127.0.0.1", telemetry.registry)
        with using(telemetry.instruments):
            found = asyncio.run(_ask(config, later))
        telemetry.tracers.force_flush()
        telemetry.meters.force_flush()
        gateway = f"127.0.0.1:{server.server_port}"
        yield World(config, plan_id, verified, found, gateway, receiver)
        server.shutdown()
        server.server_close()
        thread.join()
        telemetry.close()


async def _ask(config: Config, log: Sequence[dict[str, Any]]) -> list[Found]:
    async with Reader(open_cache(config, pipeline.open_keys(config))) as reader:
        return [
            await reader.lookup(
                Request(row["tenant"], row["model"], row["prompt"], row["system_prompt"])
            )
            for row in log
        ]
