"""What was seen of a request so far, and how replies are read into it.

An entry of another form than the planner and the reader write is a fault, whatever reading it
raises: others write to the same Redis.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import RedisError, ResponseError

from warmup_lib.evidence import Looked
from warmup_lib.places import owner
from warmup_lib.search import Near, near_in

ANSWER = ("response", "metadata")
"""Fields of an answer that are read."""

_DAMAGED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_NO_INDEX = ("no such index", "index not found")
_NO_SEARCH = "unknown command"


@dataclass
class Seen:
    """What was seen so far.

    Attributes:
        epoch: Tells the identity of the Redis's process, once it was asked.
        dimension: Length of a vector.
        looked: Every look.
        vector: The prompt's vector, float32.
        answer: The answer of an equal request, and the item that wrote it.
        chunk_ids: A ready list of chunks.
        head: Whether the system prompt is known.
        segment: The segment's vector.
        reached: Whether the Redis answered every time, if only by refusing.
    """

    epoch: Callable[[], str | None]
    dimension: int
    looked: list[Looked] = field(default_factory=list)
    vector: bytes | None = None
    answer: dict[str, Any] = field(default_factory=dict)
    chunk_ids: tuple[str, ...] | None = None
    head: bool = False
    segment: bytes | None = None
    reached: bool = True

    def note(self, layer: str, found: Any, key: str, **more: Any) -> Looked:
        """Put one look in."""
        look = Looked(layer, found, key, **more)
        self.looked.append(look)
        return look

    def fault(self, layer: str, key: str, error: Exception, **more: Any) -> None:
        """Put a look in that failed; of the error the class alone, for its message may quote."""
        self.reached &= not away(error)
        self.note(layer, "error", key, error=type(error).__name__, **more)

    def take(
        self, layer: str, key: str, reply: Any, read: Callable[[Any], bool], **more: Any
    ) -> Looked | None:
        """Put in what one key gave; return the look where that is a hit.

        Args:
            layer: The layer.
            key: The key.
            reply: What came; an exception is a fault.
            read: Takes the reply in, and says whether there was an entry.
            more: Further fields of the look.
        """
        error = reply if isinstance(reply, Exception) else None
        there = False
        if error is None:
            try:
                there = read(reply)
            except _DAMAGED as damaged:
                error = damaged
        if error is not None:
            self.fault(layer, key, error, **more)
            return None
        look = self.note(layer, "hit" if there else "absent", key, **more)
        return look if there else None

    # -- reading replies -------------------------------------------------------------------------

    def read_vector(self, reply: Any) -> bool:
        """Take the prompt's vector."""
        if reply is not None:
            self.vector = self._vector(reply)
        return reply is not None

    def read_answer(self, reply: Any) -> bool:
        """Take the answer of an equal request."""
        held = {n: v for n, v in zip(ANSWER, reply, strict=True) if v is not None}
        if "response" in held:
            self.answer = told(held)
        return "response" in held

    def read_head(self, reply: Any) -> bool:
        """Take that the system prompt is known."""
        self.head = reply[0] is not None
        return self.head

    def read_segment(self, reply: Any) -> bool:
        """Take the segment's vector."""
        if reply[0] is not None:
            self.segment = self._vector(reply[0])
        return reply[0] is not None

    def read_list(self, reply: Any) -> bool:
        """Take a ready list of chunks."""
        if reply[0] is not None:
            self.chunk_ids = chunk_ids(reply[0])
        return reply[0] is not None

    def _vector(self, held: Any) -> bytes:
        if not isinstance(held, bytes) or len(held) != 4 * self.dimension:
            raise ValueError("no vector of this encoder")
        return held

    def encoded(self, layer: str, key: str, made: Any) -> None:
        """Take the vector that an encoder made; None: it would not read the whole text."""
        if made is None:
            return
        try:
            if isinstance(made, Exception):
                raise made
            self.vector = packed(made, self.dimension)
        except Exception as error:
            self.fault(layer, key, error)

    def near(self, layer: str, index: str, reply: Any) -> list[Near] | None:
        """Return what a search found; None: it failed, which is noted if there is a search."""
        if isinstance(reply, ResponseError):
            said = str(reply).lower()
            if _NO_SEARCH in said:
                return None
            if any(words in said for words in _NO_INDEX):
                return []
        try:
            if isinstance(reply, Exception):
                raise reply
            return near_in(reply, index)
        except Exception as error:
            self.fault(layer, index, error)
            return None


def away(reply: Any) -> bool:
    """Say whether a Redis did not answer; one that refuses does, and one that holds damage."""
    return isinstance(reply, RedisError | OSError) and not isinstance(reply, ResponseError)


def packed(vector: Sequence[float], dimension: int) -> bytes:
    """Return a vector as entries hold it.

    Raises:
        ValueError: It has another length, or a component that is no finite float32.
    """
    try:
        held = struct.pack(f"<{dimension}f", *vector)
    except (struct.error, OverflowError, TypeError) as error:
        raise ValueError("no vector of this encoder") from error
    if not all(map(math.isfinite, vector)):
        raise ValueError("no vector of this encoder")
    return held


def told(held: Mapping[str, bytes]) -> dict[str, Any]:
    """Return answer and owner of an entry.

    Raises:
        ValueError: It is damaged, or its answer is empty.
        LookupError: It has no answer.
    """
    answer = held["response"].decode()
    if not answer:
        raise ValueError("an empty answer")
    return {"answer": answer, "item_id": owner(held)}


def told_near(near: Near) -> dict[str, Any] | None:
    """Return the same of a near answer; None: it is damaged."""
    try:
        return told(near.fields)
    except _DAMAGED:
        return None


def chunk_ids(held: bytes) -> tuple[str, ...]:
    """Return the chunk ids of an entry.

    Raises:
        ValueError: It is damaged.
    """
    found = json.loads(held)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("no list of chunk ids")
    return tuple(found)


def threshold_in(reply: Any, default: float) -> float:
    """Return the tenant's calibrated threshold; the default where there is none to be read.

    One above 1 says that no similar question may be served.
    """
    try:
        calibrated = float(reply[0])
    except _DAMAGED:
        return default
    return calibrated if 0 < calibrated < math.inf else default
