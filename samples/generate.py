"""Writes the sample log: one gzipped JSON Lines file a day, the documents, and a manifest."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from samples import documents, parameters
from samples.demand import Demand, incidents
from samples.serving import Gateway, line, stamp
from samples.sessions import DAY_MS, USERS, Turn, turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from samples.demand import Incident
    from samples.pool import Source
    from samples.texts import Tenant

SMALLEST_POOL = 200


def generate(
    out: Path, source: Source, *, seed: int = parameters.SEED, days: int = 14, scale: float = 1.0
) -> dict[str, Any]:
    """Write a log and return its manifest.

    The same seed, source, days and scale give the same request files, byte for byte.

    Args:
        out: folder to write to; made if absent.
        source: where the texts come from.
        seed: seed of everything that is left to chance.
        days: days to write, from 2026-03-04 on.
        scale: size of the log; 1.0 is about 70,000 requests in 14 days.
    """
    out.mkdir(parents=True, exist_ok=True)
    roots = np.random.SeedSequence(seed).spawn(8)
    tenants = source.tenants()
    bursts = incidents(tenants, days, np.random.default_rng(roots[0]))
    everything: list[Turn] = []
    for tenant, root in zip(tenants, roots[1:], strict=False):
        everything += _tenant_turns(tenant, source, root, days, scale, bursts)
    everything.sort(key=lambda turn: (turn.at_ms, turn.session, len(turn.history)))
    gateway = Gateway(seed, np.random.default_rng(roots[-2]))
    rows = _with_probes(gateway, everything, tenants, days)
    counts = _write(out, rows, days, np.random.default_rng(roots[-1]))
    chunks = sum(
        documents.write(out / "docs" / tenant, pages)
        for tenant, pages in source.documents().items()
    )
    manifest = {
        "composed": True,
        "source": source.name,
        "seed": seed,
        "days": days,
        "scale": scale,
        "counts": counts,
        "document_chunks": chunks,
        "incidents": [_described(burst) for burst in bursts],
        "suggested": _suggested(everything),
        "parameters": _parameters(),
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True)
    (out / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return manifest


def _tenant_turns(
    tenant: Tenant,
    source: Source,
    root: np.random.SeedSequence,
    days: int,
    scale: float,
    bursts: Sequence[Incident],
) -> Iterator[Turn]:
    pool_rng, demand_rng, session_rng = (np.random.default_rng(s) for s in root.spawn(3))
    pool = source.pool(tenant, max(SMALLEST_POOL, round(parameters.POOL * scale)), pool_rng)
    demand = Demand(tenant, pool, days, demand_rng)
    per_day = parameters.REQUESTS_PER_DAY * scale
    openings = demand.openings(per_day, [b for b in bursts if b.tenant == tenant.name])
    users = USERS * scale * parameters.SHAPES[tenant.name].share
    for turn in turns(tenant, pool, openings, users, session_rng):
        if turn.day <= days:
            yield turn


def _with_probes(
    gateway: Gateway, everything: Iterable[Turn], tenants: Sequence[Tenant], days: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (milliseconds since the start, row) of requests and health checks, in order of time."""
    step = parameters.PROBE_HOURS * 3_600_000
    probes = [
        (at + 60_000 * i, tenant)
        for at in range(0, days * DAY_MS, step)
        for i, tenant in enumerate(tenants)
    ]
    waiting = iter(probes)
    probe = next(waiting, None)
    for turn in everything:
        while probe and probe[0] <= turn.at_ms:
            yield probe[0], gateway.probe(probe[1], probe[0])
            probe = next(waiting, None)
        yield turn.at_ms, gateway.serve(turn)
    while probe:
        yield probe[0], gateway.probe(probe[1], probe[0])
        probe = next(waiting, None)


def _write(
    out: Path, rows: Iterator[tuple[int, dict[str, Any]]], days: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Write the day files; a few rows come twice, as a client's retry with the same id."""
    by_day: list[list[tuple[int, dict[str, Any]]]] = [[] for _ in range(days)]
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("tenant", "locale", "personal_looking", "status")
    }
    distinct: set[tuple[str, str]] = set()
    retries = 0
    for at, row in rows:
        day = by_day[at // DAY_MS]
        day.append((at, row))
        distinct.add((row["tenant"], row["prompt"]))
        counts["tenant"][row["tenant"]] += 1
        counts["locale"][str(row.get("locale"))] += 1
        counts["status"][str(row["status"])] += 1
        if kind := row["extra"].get("personal_looking"):
            counts["personal_looking"][kind] += 1
        later = at + 1_000 + int(rng.random() * 7_000)
        if rng.random() < parameters.RETRIES and later // DAY_MS == at // DAY_MS:
            day.append((later, row | {"ts": stamp(later)}))
            retries += 1
    requests = []
    for number, day in enumerate(by_day):
        name = (parameters.FIRST_DAY + timedelta(days=number)).isoformat()
        day.sort(key=lambda pair: pair[0])
        _write_day(out / f"requests-{name}.jsonl.gz", (row for _, row in day))
        requests.append(len(day))
    return {
        "rows": sum(requests),
        "rows_by_day": requests,
        "retries": retries,
        "distinct_prompts": len(distinct),
        **{name: dict(sorted(counter.items())) for name, counter in counts.items()},
    }


def _write_day(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    # no file name and no time in the header, so that the bytes depend on the rows alone
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for row in rows:
            file.write(line(row))


def _suggested(everything: Iterable[Turn]) -> dict[str, list[str]]:
    """Return each tenant's suggested questions that were asked, so that typed ones can be told."""
    found: dict[str, set[str]] = {}
    for turn in everything:
        if turn.prompt.button:
            found.setdefault(turn.tenant.name, set()).add(turn.prompt.text)
    return {name: sorted(questions) for name, questions in sorted(found.items())}


def _described(burst: Incident) -> dict[str, Any]:
    start = stamp(burst.hour * 3_600_000)
    return {"tenant": burst.tenant, "intent": burst.intent, "start": start, "hours": burst.hours}


def _parameters() -> dict[str, Any]:
    plain = {
        name: value
        for name, value in vars(parameters).items()
        if name.isupper() and isinstance(value, (int, float, str, tuple))
    }
    shapes = {name: asdict(shape) for name, shape in parameters.SHAPES.items()}
    return plain | {"FIRST_DAY": parameters.FIRST_DAY.isoformat(), "SHAPES": shapes}
