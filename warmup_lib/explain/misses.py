"""The misses of a window: as gateways saw them, else as the replay of `verify` found them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.evidence import FIELD, Evidence, Looked
from warmup_lib.explain.miss import PREFIXES, Asked, Miss, split
from warmup_lib.explain.standing import Standing
from warmup_lib.lake import Lake
from warmup_lib.places import EMBEDDINGS, RESPONSES, RETRIEVAL

_MARK = f'"{FIELD}"'
_MOST = 0.5
"""Of a log file whose gateway gives evidence, at least this share of the requests has some."""

Key = tuple[str, str]
"""Tenant and request id."""


LOOKED_UP = (EMBEDDINGS, RESPONSES)
"""The layers in which every request is looked up, by gateways and by the replay."""


@dataclass(frozen=True)
class Passed:
    """A request for which no look was made, though the gateway that logged it makes looks."""

    asked: Asked
    evidence: Evidence | None


@dataclass(frozen=True)
class Unread:
    """A request whose evidence has a form that nobody knows.

    Attributes:
        asked: The request.
        why: What of the form is wrong; no value of it.
    """

    asked: Asked
    why: str


@dataclass(frozen=True)
class Replayed:
    """What the replay of `verify` wrote of a window.

    Attributes:
        lake: The lake.
        plan_id: The plan.
        window: The window's name.
    """

    lake: Lake
    plan_id: str
    window: str

    def lacks(self, rows: pa.Table) -> int:
        """Return how many of these requests were not looked up where every one is."""
        return len(self._query(_LACKING, rows)) if self._there else int(rows.num_rows)

    def misses(self, rows: pa.Table) -> dict[Key, list[Mapping[str, Any]]]:
        """Return the rows of `hits` that are misses of these requests."""
        found: dict[Key, list[Mapping[str, Any]]] = defaultdict(list)
        for row in self._query(_MISSES, rows) if self._there else ():
            found[row["tenant"], row["request_id"]].append(row)
        return found

    @property
    def _there(self) -> bool:
        return self.lake.manifest("hits", self._partition) is not None

    @property
    def _partition(self) -> dict[str, str]:
        return {"plan_id": self.plan_id, "window": self.window}

    def _query(self, query: str, rows: pa.Table) -> list[dict[str, Any]]:
        connection = self.lake.sql()
        try:
            connection.register("asked", rows.select(["tenant", "request_id"]))
            found = connection.sql(query, params=self._partition)
            return list(found.to_arrow_table().to_pylist())
        finally:
            connection.close()


_MISSES = """
SELECT hits.tenant, hits.request_id, layer, tier, target, prompt_tokens, cached_tokens
FROM hits INNER JOIN asked USING (tenant, request_id)
WHERE plan_id = $plan_id AND "window" = $window AND NOT hit
ORDER BY hits.tenant, hits.request_id, layer, tier, target
"""
_LACKING = f"""
WITH expected AS (
    SELECT DISTINCT asked.tenant, asked.request_id, plan.layer
    FROM asked, plan
    WHERE plan_id = $plan_id AND layer IN {LOOKED_UP} AND tier IS NULL
),
replayed AS (
    SELECT tenant, request_id, layer
    FROM hits
    WHERE plan_id = $plan_id AND "window" = $window AND tier IS NULL
)
SELECT DISTINCT tenant, request_id
FROM expected ANTI JOIN replayed USING (tenant, request_id, layer)
"""


def gateways(rows: pa.Table) -> frozenset[str]:
    """Return the log files most of whose requests carry evidence.

    A request in one of them without any, that asked for no bypass and was served by no cache,
    went past the gateway's cache.
    """
    has = pc.cast(pc.fill_null(pc.match_substring(rows["extra"], _MARK), False), pa.int64())
    grouped = pa.table({"source": rows["source"], "has": has}).group_by("source")
    means = grouped.aggregate([("has", "mean")]).to_pylist()
    return frozenset(row["source"] for row in means if row["has_mean"] >= _MOST)


def silent_requests(rows: pa.Table, sources: frozenset[str]) -> pa.Table:
    """Return the requests that only a replay can tell about."""
    has = pc.fill_null(pc.match_substring(rows["extra"], _MARK), False)
    known = pc.is_in(rows["source"], value_set=pa.array(sorted(sources), pa.string()))
    return rows.filter(pc.invert(pc.or_(has, known)))


def evidence_of(extra: str | None) -> Evidence | None:
    """Return a row's evidence; None: it has none, or none that can be read."""
    try:
        return _read(extra)
    except ValueError:
        return None


def _read(extra: str | None) -> Evidence | None:
    if extra is None or _MARK not in extra:
        return None
    held = orjson.loads(extra).get(FIELD)
    return None if held is None else Evidence.from_dict(held)


def collect(
    rows: pa.Table,
    replayed: Replayed,
    sources: frozenset[str],
    standing: Standing,
) -> Iterator[Miss | Passed | Unread]:
    """Yield the misses of some requests, each once a layer and tier, whatever targets missed it.

    What a gateway saw in a layer goes before what the replay found there.

    Args:
        rows: Rows of `requests` that asked the caches.
        replayed: The replay.
        sources: The log files whose gateway gives evidence.
        standing: Which targets there are, and what was seen on them.
    """
    found = replayed.misses(rows)
    for row in rows.select(list(Asked._fields)).to_pylist():
        asked = Asked(**row)
        try:
            evidence = _read(asked.extra)
        except ValueError as error:
            if asked.served_from is None:
                yield Unread(asked, str(error))
            continue
        if _passed(asked, evidence, sources):
            yield Passed(asked, evidence)
            continue
        seen = _seen(evidence)
        if evidence is not None:
            yield from _at_the_time(asked, evidence, seen, standing)
        for miss in found.get((asked.tenant, asked.request_id), ()):
            place = miss["layer"], miss["tier"]
            if place not in seen:
                seen[place] = []
                yield _later(asked, miss)


def _passed(asked: Asked, evidence: Evidence | None, sources: frozenset[str]) -> bool:
    if evidence is not None:
        return not evidence.looked and evidence.bypass is None and asked.served_from is None
    return asked.source in sources and asked.served_from is None


def _seen(evidence: Evidence | None) -> dict[tuple[str, str | None], list[Looked]]:
    """Return the looks by layer and tier."""
    looks: dict[tuple[str, str | None], list[Looked]] = defaultdict(list)
    for look in evidence.looked if evidence is not None else ():
        looks[split(look.layer)].append(look)
    if evidence is not None and evidence.host is not None:
        looks.setdefault((PREFIXES, None), [])
    return looks


def _at_the_time(
    asked: Asked,
    evidence: Evidence,
    seen: Mapping[tuple[str, str | None], Sequence[Looked]],
    standing: Standing,
) -> Iterator[Miss]:
    for (layer, tier), looks in seen.items():
        if layer == PREFIXES:
            target = evidence.host or standing.holding(evidence.host_epoch, "host")
            whole = standing.whole(asked.tenant, asked.head_digest, target)
            if not _missed_on_host(asked, evidence, looks, whole):
                continue
        else:
            if not _missed(layer, tier, looks):
                continue
            target = standing.holding(evidence.redis_epoch, "redis")
        yield Miss(
            asked,
            layer,
            tier,
            target,
            evidence,
            tuple(look for look in looks if look.found != "hit"),
            asked.prompt_tokens,
            asked.cached_tokens,
        )


def _missed(layer: str, tier: str | None, looks: Sequence[Looked]) -> bool:
    """Say whether a layer served nothing: one hit is enough, but of chunks all are needed."""
    hits = [look.found == "hit" for look in looks]
    return not (all(hits) if (layer, tier) == (RETRIEVAL, None) else any(hits))


def _missed_on_host(asked: Asked, evidence: Evidence, looks: Sequence[Looked], whole: int) -> bool:
    if looks:
        return not any(look.found == "hit" for look in looks)
    if asked.cached_tokens is None:
        return evidence.host_ready is False
    return asked.cached_tokens < whole


def _later(asked: Asked, miss: Mapping[str, Any]) -> Miss:
    return Miss(
        asked,
        miss["layer"],
        miss["tier"],
        miss["target"],
        prompt_tokens=miss["prompt_tokens"],
        cached_tokens=miss["cached_tokens"],
    )
