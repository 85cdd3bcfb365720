"""What the history knows besides texts: tenants, models, revisions and adapters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from warmup_lib.explain.miss import Asked
from warmup_lib.keys import DIMENSION_FIELDS, Keys, Request
from warmup_lib.lake import Lake

_SERVED = """
SELECT DISTINCT tenant, model, model_revision, adapter
FROM prompts
WHERE day <= CAST($day AS DATE)
ORDER BY ALL
"""


@dataclass(frozen=True)
class Known:
    """Who asked for what in the history.

    Attributes:
        tenants: All tenants.
        revisions: The revisions of each model; None among them: requests that named none.
        adapters: All adapters, by their names in the log.
    """

    tenants: frozenset[str] = frozenset()
    revisions: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    adapters: frozenset[str] = frozenset()

    def models_beside(self, model: str) -> list[str]:
        """Return a model and all others, itself first."""
        return [model, *sorted(set(self.revisions) - {model})]

    def revisions_of(self, model: str) -> list[str | None]:
        """Return the revisions of a model, none first."""
        return sorted(self.revisions.get(model, frozenset()) | {None}, key=lambda r: r or "")


def read_known(lake: Lake, day: str) -> Known:
    """Return what the history up to a day knows."""
    connection = lake.sql()
    try:
        rows = connection.sql(_SERVED, params={"day": day}).fetchall()
    finally:
        connection.close()
    revisions: dict[str, set[str | None]] = defaultdict(set)
    for _, model, revision, _ in rows:
        revisions[model].add(revision)
    return Known(
        frozenset(row[0] for row in rows),
        {model: frozenset(found) for model, found in revisions.items()},
        frozenset(row[3] for row in rows if row[3] is not None),
    )


def request_of(asked: Asked, keys: Keys) -> Request | None:
    """Return a stored request as keys are made of it; None: something of it was removed."""
    if asked.redacted:
        return None
    params = orjson.loads(asked.params) if asked.params else {}
    extra = orjson.loads(asked.extra) if asked.extra else {}
    fields = {**{n: getattr(asked, n) for n in DIMENSION_FIELDS}, "extra": extra, "params": params}
    return Request(
        tenant=asked.tenant,
        model=asked.model,
        prompt=asked.prompt,
        system_prompt=asked.system_prompt,
        history=orjson.loads(asked.history) if asked.history else (),
        tools=orjson.loads(asked.tools) if asked.tools else None,
        model_revision=asked.model_revision,
        adapter=asked.adapter,
        params=params,
        dimensions=keys.dimensions_in(fields),
    )
