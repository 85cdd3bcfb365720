"""What a lookup gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from warmup_lib.evidence import Evidence, Looked


@dataclass(frozen=True)
class Computed:
    """An answer that was just made.

    Attributes:
        answer: Its text.
        keep: Whether it may serve later requests: not one that was cut off, or calls a tool.
        detail: Anything else that whoever made it wants back.
    """

    answer: str
    keep: bool = True
    detail: Any = None


@dataclass(frozen=True)
class Found:
    """What the caches have for one request.

    Attributes:
        hit: Whether a stored answer serves it.
        evidence: Every look, for the request log's field `cache_evidence`.
        answer: The answer: the stored one, or what was computed.
        match: How the stored answer was found.
        similarity: Cosine with the question it was stored for; None: not found by similarity.
        item_id: The plan item that wrote it; None: none did.
        vector: Vector of the prompt, float32, little endian; None: not known.
        chunk_ids: Ready chunk list of what was asked, best first; None: none was found.
        head: Whether the system prompt is known (L1).
        segment: Vector of the user segment (L2), as `vector`; None: not known.
        served: The look that gave the answer.
        computed: What `compute` gave, where it was called for this request or one like it.
        joined: Another request's computation gave the answer.
        stored: Whether the computed answer was stored.
        reached: Whether the Redis answered every look; where not, nothing was stored either.
    """

    hit: bool
    evidence: Evidence = field(default_factory=Evidence)
    answer: str | None = None
    match: Literal["exact", "semantic"] | None = None
    similarity: float | None = None
    item_id: str | None = None
    vector: bytes | None = None
    chunk_ids: tuple[str, ...] | None = None
    head: bool = False
    segment: bytes | None = None
    served: Looked | None = None
    computed: Computed | None = None
    joined: bool = False
    stored: bool = False
    reached: bool = True

    @property
    def layer(self) -> str | None:
        """The layer that serves the request, as the log's `served_from`; None: none does."""
        return self.served.layer if self.served else None

    @property
    def key(self) -> str | None:
        """Key of the entry that serves it."""
        return (self.served.nearest or self.served.key) if self.served else None
