"""The sample log as this bench uses it: heads to plan for, and later requests to send."""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib.config import Config
from warmup_lib.distil.volatile import volatile
from warmup_lib.forecast.estimators import DEFAULT
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.prefixes import Prefixes
from warmup_lib.layers.rows import plan_rows
from warmup_lib.tables import MICRO
from warmup_lib.targets.chat import Head

SCALE = 0.1
REQUESTS = 100
SEED = 20260302
LAYER = Prefixes()


@dataclass(frozen=True)
class Ask:
    """One request of the last day: its place in `heads`, and what is asked."""

    tenant: str
    head: Head
    digest: str
    prompt: str


def compose() -> tuple[list[PlanItem], list[Ask], list[Ask]]:
    """Return the heads of days 1 to 13, the hottest first, day 14, and a sample of it.

    Heat decays as in a forecast; a plan holds as many heads as by default.
    """
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), Shipped(), scale=SCALE)
        days = [_asks(path) for path in sorted(Path(folder).glob("requests-*.jsonl.gz"))]
    heads = {ask.digest: ask for day in days[:-1] for ask in day}
    half_life = DEFAULT.days
    heat: dict[str, float] = defaultdict(float)
    for age, day in enumerate(reversed(days[:-1])):
        for ask in day:
            heat[ask.digest] += MICRO * 2 ** (-age / half_life)
    unwarmable = volatile(
        ((a.tenant, a.head.adapter), d, a.head.system_prompt or "", a.head.tools or "")
        for d, a in heads.items()
    )
    rows = [
        {
            "tenant": ask.tenant,
            "model": ask.head.model,
            "adapter": ask.head.adapter,
            "system_prompt": ask.head.system_prompt,
            "tools": ask.head.tools,
            "key_digest": digest,
            "heat_micro": round(heat[digest]),
        }
        for digest, ask in heads.items()
        if digest not in unwarmable
    ]
    columns = {"bytes": 0, "ttl_s": 1800}
    items = PlanItem.rows(plan_rows(LAYER.name, pa.Table.from_pylist(rows), columns))
    items.sort(key=lambda item: (-item.heat_micro, item.key_digest))
    ranked = [
        replace(item, rank=rank, expected_micro=item.heat_micro)
        for rank, item in enumerate(items[: Config().layers.prefixes.items], 1)
    ]
    draw = np.random.default_rng(SEED).choice(len(days[-1]), REQUESTS, replace=False)
    return ranked, days[-1], [days[-1][n] for n in sorted(draw)]


def _asks(path: Path) -> list[Ask]:
    asks = []
    with gzip.open(path) as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if not row.get("system_prompt"):
            continue  # health checks
        tools = json.dumps(row["tools"]) if row.get("tools") else None
        head = Head(row["model"], row["system_prompt"], tools, row.get("adapter"))
        parts = json.dumps([row["tenant"], *asdict(head).values()])
        asks.append(
            Ask(row["tenant"], head, hashlib.sha256(parts.encode()).hexdigest(), row["prompt"])
        )
    return asks
