"""One miss as explaining sees it: the request, the layer that had nothing, and what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from warmup_lib.causes import Cause
from warmup_lib.evidence import Evidence, Looked
from warmup_lib.places import LISTS, RESPONSES

PREFIXES = "prefixes"
L1, L2, L3 = "L1", "L2", "L3"


class Asked(NamedTuple):
    """What of a row of `requests` can tell why it missed."""

    request_id: str
    ts: datetime
    tenant: str
    model: str
    model_revision: str | None
    adapter: str | None
    prompt: str
    system_prompt: str | None
    history: str | None
    tools: str | None
    params: str | None
    user_segment: str | None
    session_id: str | None
    locale: str | None
    intent: str | None
    ab_arm: str | None
    chunk_ids: Sequence[str] | None
    prompt_tokens: int | None
    cached_tokens: int | None
    cache_control: str | None
    served_from: str | None
    redacted: bool
    bypass: bool
    text_digest: str
    context_digest: str
    response_digest: str
    head_digest: str
    extra: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that found nothing in one layer.

    Attributes:
        asked: The request.
        layer: The layer.
        tier: The tier in it; None: its main items.
        target: The target asked; None: not known.
        evidence: What the gateway saw at the time; None: it was replayed later.
        looks: Its looks in this layer, in order; empty where it made none.
        prompt_tokens: Prompt length on a host.
        cached_tokens: Prompt tokens that the host had.
    """

    asked: Asked
    layer: str
    tier: str | None
    target: str | None
    evidence: Evidence | None = None
    looks: tuple[Looked, ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None

    @property
    def word(self) -> str:
        """The layer as keys have it, such as `embeddings.l1`."""
        return self.layer if self.tier is None else f"{self.layer}.{self.tier.lower()}"

    @property
    def similar(self) -> bool:
        """Whether the layer also serves what is only similar."""
        return self.word in (RESPONSES, LISTS)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a request missed.

    Attributes:
        cause: The cause.
        evidence: What shows it: words and figures, never a text.
        item_id: The plan item that should have served it.
    """

    cause: Cause
    evidence: str
    item_id: str | None = None


def split(word: str) -> tuple[str, str | None]:
    """Return layer and tier of a layer's word in keys and looks, such as `embeddings.l1`."""
    layer, _, tier = word.partition(".")
    return layer, tier.upper() or None
