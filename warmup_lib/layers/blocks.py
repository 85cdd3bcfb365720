"""Heads as chains of whole cache blocks: which fit a budget, and in which order they are filled.

A block stands for all tokens up to its end, under one model and salt. Heads that begin alike share
blocks, so that their chains form a tree; a cache holds, and a budget counts, a block once.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Blocks = tuple[bytes, ...]


@dataclass(frozen=True)
class Chain:
    """One head as blocks.

    Attributes:
        item_id: Its plan item.
        rank: Its rank in the plan.
        hits: Expected hits, in any unit.
        blocks: Digests of its whole blocks, first one first.
    """

    item_id: str
    rank: int
    hits: int
    blocks: Blocks


@dataclass(frozen=True)
class Fit:
    """What of some heads a budget holds.

    Attributes:
        chosen: The heads, in the order in which they were chosen.
        beyond: Item ids of the others, with the blocks that each would still need.
        used: Distinct blocks of the chosen heads.
        left: Blocks that stay free; None: there is no budget.
    """

    chosen: Sequence[Chain]
    beyond: Mapping[str, int]
    used: int
    left: int | None


def cut(tokens: Sequence[int], block_size: int, place: str) -> Blocks:
    """Return the digests of the whole blocks of a head.

    Args:
        tokens: The tokens that all its requests share.
        block_size: Tokens in a block of the host.
        place: Served model and salt: other places share nothing.
    """
    running = hashlib.blake2b(place.encode(), digest_size=16)
    blocks = []
    for end in range(block_size, len(tokens) + 1, block_size):
        running.update(array("q", tokens[end - block_size : end]).tobytes())
        blocks.append(running.digest())
    return tuple(blocks)


def distinct(chains: Sequence[Chain]) -> int:
    """Return how many blocks these heads take together."""
    return len({block for chain in chains for block in chain.blocks})


def fit(chains: Sequence[Chain], budget: int | None) -> Fit:
    """Choose the heads that a budget holds: most expected hits for a new block, then by rank.

    Args:
        chains: The heads.
        budget: Blocks; None: no limit.
    """
    new = {chain.item_id: len(chain.blocks) for chain in chains}
    users: dict[bytes, list[str]] = defaultdict(list)
    for chain in chains:
        for block in chain.blocks:
            users[block].append(chain.item_id)
    rest = sorted(chains, key=lambda chain: chain.rank)
    left = len(users) if budget is None else budget
    chosen: list[Chain] = []
    held: set[bytes] = set()
    while fitting := [chain for chain in rest if new[chain.item_id] <= left]:
        best = max(fitting, key=lambda chain: _worth(chain, new[chain.item_id]))
        chosen.append(best)
        rest.remove(best)
        left -= new[best.item_id]
        for block in best.blocks:
            if block not in held:
                held.add(block)
                for user in users[block]:
                    new[user] -= 1
    beyond = {chain.item_id: new[chain.item_id] for chain in rest}
    return Fit(chosen, beyond, len(held), None if budget is None else left)


def _worth(chain: Chain, new: int) -> float:
    return chain.hits / new if new else float("inf")


def in_order(chains: Sequence[Chain]) -> list[Chain]:
    """Return heads so that a stem is filled once and what grows from it follows at once.

    At each branching the way with the longest stem that several heads share goes first, then the
    one with the best rank; a head goes before those that extend it.
    """
    uses = Counter(block for chain in chains for block in chain.blocks)
    shared: dict[bytes, int] = {}
    rank: dict[bytes, int] = {}
    for chain in chains:
        common = sum(uses[block] > 1 for block in chain.blocks)  # they are its first ones
        for block in chain.blocks:
            shared[block] = max(shared.get(block, 0), common)
            rank[block] = min(rank.get(block, chain.rank), chain.rank)

    def way(chain: Chain) -> tuple[list[tuple[int, int, bytes]], int]:
        return [(-shared[block], rank[block], block) for block in chain.blocks], chain.rank

    return sorted(chains, key=way)
