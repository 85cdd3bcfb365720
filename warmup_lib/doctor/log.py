"""A request log as the traps look at it: rows with the cache keys that a gateway wrote down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from warmup_lib.evidence import FIELD, Evidence
from warmup_lib.keys import take_apart

_LITELLM_OFF = "Cache OFF"
_FIELDS = ("user_segment", "locale", "intent", "ab_arm", "session_id")
_NO_FIELD = frozenset({FIELD, "cache_key", "litellm_call_id", "spend", "call_type", "route"})
_COLUMNS = (
    "request_id", "ts", "tenant", "model", "model_revision", "adapter", "prompt", "system_prompt",
    "history", "tools", "params", "response", "response_digest", "text_digest", "head_digest",
    "bypass", "status", "prompt_tokens", "cached_tokens", "warmup", "health", "redacted",
    "served_from", "cache_control", "extra", *_FIELDS,
)  # fmt: skip

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Key:
    """A key that a request was looked up under.

    Attributes:
        layer: Layer, with its tier where it has one.
        text: The key.
        environment: What may rightly give one request another key: secret, encoder, chat template,
            adapter as served.
        scope: The tenant in a key of our own form; None: it has another.
        characters: Length of the text it was made of; None: not noted.
        fields: Names of further fields that it was noted to hold.
    """

    layer: str
    text: str
    environment: tuple[str | None, ...]
    scope: str | None = None
    characters: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One request. `values` are the columns of `requests`."""

    values: Mapping[str, Any]
    evidence: Evidence | None
    extra: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def demand(self) -> bool:
        """Whether it is a request of the application's: no warm-up, no health check."""
        return not self.values["warmup"] and not self.values["health"]

    @property
    def content(self) -> tuple[Any, ...]:
        """All that was said, whoever asked it of which model."""
        v = self.values
        return v["text_digest"], v["system_prompt"], v["history"], v["tools"]

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The keys of its exact looks: by its evidence, or LiteLLM's `cache_key`."""
        found = []
        if self.evidence is not None:
            seen = self.evidence
            environment = (seen.secret_id, seen.encoder, seen.template, seen.adapter)
            for look in seen.looked:
                own = take_apart(look.key)
                if look.similarity is None and (own is None or own.digest):
                    scope = own.tenant if own else None
                    found.append(
                        Key(
                            look.layer,
                            look.key,
                            environment,
                            scope,
                            look.characters,
                            look.fields,
                        )
                    )
        logged = self.extra.get("cache_key")
        if isinstance(logged, str) and logged not in ("", _LITELLM_OFF):
            found.append(Key("responses", logged, ()))
        return tuple(found)

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields that a key could hold though they change no answer, by name."""
        held = {name: str(self.values[name]) for name in _FIELDS if self.values[name] is not None}
        held["hour"] = str(self.values["ts"].hour)
        held |= dict(_flat(self.extra, ""))
        return held


def _flat(place: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for name, value in place.items():
        if name in _NO_FIELD:
            continue
        if isinstance(value, Mapping):
            if not before:
                yield from _flat(value, f"{name}.")
        elif isinstance(value, str | int | float | bool):
            yield f"{before}{name}", str(value)


@dataclass(frozen=True)
class Log:
    """Requests in the order of their arrival.

    Attributes:
        rows: What the application asked for.
        own: Warm-up requests of our own.
        nameless: Rows that could not be used because they name no tenant, or a wildcard.
    """

    rows: tuple[Row, ...]
    own: tuple[Row, ...]
    nameless: int

    @property
    def tenants(self) -> set[str]:
        """All tenants."""
        return {row.tenant for row in self.rows}

    @property
    def begins(self) -> datetime:
        """When its first request arrived."""
        begun: datetime = min(row.ts for row in (*self.rows, *self.own))
        return begun


def read_log(requests: pa.Table, nameless: int = 0) -> Log:
    """Return rows of the table `requests` as a log.

    Args:
        requests: The rows.
        nameless: How many more rows named no tenant.
    """
    rows = [_row(values) for values in requests.select(_COLUMNS).to_pylist()]
    rows.sort(key=lambda row: (row.ts, row.request_id))
    return Log(
        tuple(row for row in rows if row.demand),
        tuple(row for row in rows if row.warmup),
        nameless,
    )


def _row(values: dict[str, Any]) -> Row:
    extra = json.loads(values.pop("extra") or "{}")
    try:
        evidence = Evidence.from_dict(extra[FIELD]) if extra.get(FIELD) else None
    except ValueError:
        evidence = None
    return Row(values, evidence, extra)
