"""One request as a dialect understood it: canonical fields, nothing removed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from warmup_lib.ingest.times import Clock


@dataclass(slots=True, kw_only=True)
class LogRow:
    """A request, its fields named as in docs/requests.md.

    Attributes:
        incomplete: The log has cut something out of prompt, system prompt or history, so that
            the identity is not the one the serving side sees.
        health: A health check.
        cache_hit: Served by a cache.
        bypass: Went round the caches.
    """

    request_id: str
    ts: datetime
    tenant: str
    model: str
    prompt: str
    system_prompt: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    tools: list[Any] | None = None
    model_revision: str | None = None
    adapter: str | None = None
    user_segment: str | None = None
    session_id: str | None = None
    locale: str | None = None
    intent: str | None = None
    ab_arm: str | None = None
    ab_score: float | None = None
    params: dict[str, Any] = field(default_factory=dict)
    cache_control: str | None = None
    response: str | None = None
    status: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_ms: float | None = None
    latency_ms: float | None = None
    served_from: str | None = None
    chunk_ids: list[str] | None = None
    warmup: bool = False
    health: bool = False
    cache_hit: bool = False
    bypass: bool = False
    incomplete: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


class Dialect(Protocol):
    """One log format. Registered in `warmup_lib.ingest.dialects`."""

    name: str

    @property
    def columns(self) -> frozenset[str]:
        """Names of its fields."""

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Return whether a decoded row looks like this format."""

    def parse(self, row: Mapping[str, Any], clock: Clock) -> LogRow:
        """Return the request of a decoded row.

        Raises:
            Rejected: The row can't be used.
            BadMessages: Its message list can't.
        """
