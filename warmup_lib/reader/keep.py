"""What a computed answer leaves on the Redis, as commands; nothing is sent from here.

Every entry gets its lifetime with the write, counted from then: reading never prolongs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.places import answer_fields
from warmup_lib.reader.asked import Asked
from warmup_lib.reader.cache import Cache
from warmup_lib.search import Command, create_answer_index

_UNLOCK = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0"

# What has the right length is left with its own lifetime; all else there is damaged, or nothing.
_KEEP_VECTOR = """
if redis.pcall('STRLEN',KEYS[1])==string.len(ARGV[1]) then return 0 end
return redis.call('SET',KEYS[1],ARGV[1],'EXAT',ARGV[2])"""


def keeping(
    asked: Asked, cache: Cache, answer: str, vector: bytes | None, now: float
) -> list[Command]:
    """Return the commands that store an answer and the vector of its question.

    Args:
        asked: The request.
        cache: Where it goes.
        answer: The answer.
        vector: The prompt's vector; None: the answer is found by its key only.
        now: Time of the write, epoch seconds.
    """
    request, places = asked.request, cache.places
    key, shared = asked.answer_key, places.shared(asked.identity.context, request.adapter)
    fields = answer_fields(key, request.prompt, answer, vector, shared, {}, now)
    pairs = [part for named in fields.items() for part in named]
    expires = int(now) + cache.ttl_s
    commands: list[Command] = []
    if vector is not None:  # first: what is there before an index is indexed later, by a scan
        commands.append(create_answer_index(places.answers(request.tenant), cache.dimension))
    commands += [["MULTI"], ["HSET", key, *pairs], ["EXPIREAT", key, expires]]
    if vector is not None:
        place = places.embedding(request.tenant, asked.identity.text)
        commands.append(["EVAL", _KEEP_VECTOR, 1, place, vector, expires])
    return [*commands, ["EXEC"]]


def kept(replies: Sequence[Any]) -> bool:
    """Return whether the answer was stored, from the replies of `keeping`.

    That the index was there already, or that there can be none, is no fault.
    """
    done = replies[-1]
    return isinstance(done, list) and not any(isinstance(one, Exception) for one in done)


def fitting(cache: Cache, vector: bytes | None) -> bytes | None:
    """Return a vector that an application hands in.

    Raises:
        InputDataError: It is none of this cache's encoder.
    """
    if vector is not None and len(vector) != 4 * cache.dimension:
        raise InputDataError(f"the vector must be {cache.dimension} numbers, float32")
    return vector


def locking(lock_key: str, word: str, lock_s: float) -> Command:
    """Return the command that takes the lock of whoever computes an answer."""
    return ["SET", lock_key, word, "NX", "PX", int(lock_s * 1000)]


def unlocking(lock_key: str, word: str) -> Command:
    """Return the command that gives it back, if it is still ours."""
    return ["EVAL", _UNLOCK, 1, lock_key, word]


def waiting(answer_key: str, lock_key: str) -> list[Command]:
    """Return the commands that look for an answer while another one computes it."""
    return [["HGET", answer_key, "response"], ["EXISTS", lock_key]]


def awaited(replies: Sequence[Any]) -> tuple[str | None, bool]:
    """Return the answer that is there by now, and whether somebody still computes it."""
    answer, computing = replies
    if isinstance(answer, bytes):
        try:
            return answer.decode() or None, False
        except UnicodeDecodeError:
            return None, False
    return None, answer is None and computing == 1
