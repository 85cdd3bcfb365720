"""A bounded set of entries on a Redis, from which the least used go.

Redis evicts by instance and knows nothing of our sets, so the planner counts uses itself: a sorted
set holds each entry's key with its uses, as the plan that wrote it last expected them.
"""

from __future__ import annotations

from collections.abc import Mapping

from warmup_lib.search import Command
from warmup_lib.targets.store import GENERATION_TTL_S, RedisStore


async def keep_most_used(
    store: RedisStore, ledger: str, uses: Mapping[str, int], bound: int
) -> list[str]:
    """Note the uses of entries, and take others away until the set keeps its bound.

    What is about to be written stays; of the rest the most used do, by key on ties. Entries that
    ran out are forgotten.

    Args:
        store: The Redis.
        ledger: Key of the sorted set.
        uses: By key, the uses of the entries that are about to be written: `bound` at most.
        bound: Most entries in the set.

    Returns:
        The keys that were taken away, least used last.

    Raises:
        StoreUnavailable: The Redis does not answer.
    """
    [noted] = await store.run([["ZRANGE", ledger, 0, -1, "WITHSCORES"]])
    pairs = zip(noted[::2], noted[1::2], strict=True)
    others = {key.decode(): float(score) for key, score in pairs}
    others = {key: score for key, score in others.items() if key not in uses}
    there = await store.run([["EXISTS", key] for key in others])
    gone = [key for key, exists in zip(others, there, strict=True) if not exists]
    left = sorted(others.keys() - set(gone), key=lambda key: (-others[key], key))
    dropped = left[max(0, bound - len(uses)) :]
    commands: list[Command] = [["ZADD", ledger, count, key] for key, count in uses.items()]
    commands += [["ZREM", ledger, key] for key in (*gone, *dropped)]
    commands += [["DEL", key] for key in dropped]
    if commands:
        await store.run([*commands, ["EXPIRE", ledger, GENERATION_TTL_S]], atomic=True)
    return dropped
