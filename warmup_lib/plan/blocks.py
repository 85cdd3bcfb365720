"""What is asked for in vain: under another key than the planner writes, or past the caches.

Warming it serves nobody, so that it is not planned until a look-up shows that it is asked for as
it should be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from warmup_lib.causes import Cause

KEY_MISMATCH, NEVER_HIT = "key_mismatch", "never_hit"
"""Why a candidate is left out: it is asked for under another key; nobody was served by it."""

WRONG = frozenset(c for c in Cause if c.mismatch or c is Cause.BYPASS_MIDDLEWARE)
"""What stays as it is until somebody mends it outside of the planner, whatever is warmed."""

_FEWEST = 3
"""Look-ups that block something: fewer may be somebody who tries something out by hand."""


class Group(NamedTuple):
    """What one gateway setting decides about."""

    tenant: str
    layer: str
    tier: str | None


class Looks(NamedTuple):
    """Look-ups of one day of the same kind.

    Attributes:
        day: The day, ISO date.
        group: What they were for.
        digest: The digest in the key that would have served them; None: not known.
        requests: How many requests.
        cause: Why they were in vain; None: they were not.
        evidence: What shows it.
        inferred: It is told by the item, which was planned for requests that differ in one thing,
            and says nothing of other items.
    """

    day: str
    group: Group
    digest: str | None
    requests: int
    cause: Cause | None = None
    evidence: str = ""
    inferred: bool = False


@dataclass(frozen=True)
class Block:
    """What is not planned because all look-ups for it were in vain.

    Attributes:
        group: Tenant, layer and tier.
        digests: Which items, by the digests in their keys; None: all of the group.
        cause: The cause that most look-ups had, on the last day.
        evidence: What shows it, of most of these.
        day: The last day on which it was looked up, ISO date.
        looks: Look-ups since the last one that was as it should be.
    """

    group: Group
    digests: frozenset[str] | None
    cause: Cause
    evidence: str
    day: str
    looks: int

    @property
    def reason(self) -> str:
        """Why its candidates are left out, as in the `left_out` table."""
        return f"{KEY_MISMATCH if self.cause.mismatch else NEVER_HIT}: {self.cause.value}"

    @property
    def says(self) -> str:
        """The sentence for whoever makes the plan: what, why, what to do."""
        tenant, layer, tier = self.group
        place = layer if tier is None else f"{layer} {tier}"
        count = len(self.digests or ())
        items = "nothing is" if self.digests is None else "1 item is not"
        what = f"{count:,} items are not" if count > 1 else items
        how = "asked for another key" if self.cause.mismatch else "went past the caches"
        return (
            f"{tenant}: {what} planned for {place}, for all {self.looks:,} requests for it up to "
            f"{self.day} {how} ({self.cause.value}: {self.evidence}). {self.cause.remedy} "
            f"The first one that does not lifts this. {self.cause.link}"
        )


def judge(looks: Iterable[Looks]) -> list[Block]:
    """Return what is blocked: groups first, then items of the others.

    A group, or an item, is blocked while its last look-ups, three at least, were all in vain. An
    item is free again, too, once a day's look-ups of its group were all as they should be.
    """
    found = list(looks)
    of_group: dict[Group, _Days] = defaultdict(_Days)
    around: dict[Group, _Days] = defaultdict(_Days)
    of_item: dict[tuple[Group, str], _Days] = defaultdict(_Days)
    for one in found:
        around[one.group].add(one)
        if not one.inferred:
            of_group[one.group].add(one)
        if one.digest is not None:
            of_item[one.group, one.digest].add(one)
    groups = {
        group: block
        for group, days in of_group.items()
        if (block := days.block(group, None, {})) is not None
    }
    items = [
        block
        for (group, digest), days in of_item.items()
        if group not in groups
        and (block := days.block(group, digest, around[group].counts)) is not None
    ]
    return sorted([*groups.values(), *_merged(items)], key=lambda block: repr(block.group))


class _Days:
    """The look-ups of one group or item, by day."""

    def __init__(self) -> None:
        self.counts: dict[str, tuple[int, int]] = {}
        self._why: dict[str, Counter[tuple[Cause, str]]] = defaultdict(Counter)

    def add(self, one: Looks) -> None:
        """Count look-ups."""
        vain, right = self.counts.get(one.day, (0, 0))
        if one.cause is None:
            self.counts[one.day] = vain, right + one.requests
        else:
            self.counts[one.day] = vain + one.requests, right
            self._why[one.day][one.cause, one.evidence] += one.requests

    def block(
        self, group: Group, digest: str | None, around: Mapping[str, tuple[int, int]]
    ) -> Block | None:
        """Return the block that follows; None: there is none.

        Args:
            group: The group.
            digest: The item; None: all of the group.
            around: The counts of an item's group.
        """
        looks, last = 0, None
        for day in sorted({*self.counts, *around}, reverse=True):
            vain, right = self.counts.get(day, (0, 0))
            others, served = around.get(day, (0, 0))
            if right or (served and not others and not vain):
                break
            looks += vain
            last = last or (day if vain else None)
        if last is None or looks < _FEWEST:
            return None
        ranked = sorted(self._why[last].items(), key=lambda pair: (-pair[1], pair[0]))
        cause, evidence = ranked[0][0]
        digests = None if digest is None else frozenset([digest])
        return Block(group, digests, cause, evidence, last, looks)


def _merged(items: Iterable[Block]) -> list[Block]:
    """Return blocks of items as one for each group and cause, which tells what most of them do."""
    together: dict[tuple[Group, Cause], list[Block]] = defaultdict(list)
    for one in items:
        together[one.group, one.cause].append(one)
    merged = []
    for (group, cause), held in together.items():
        digests = frozenset(digest for one in held for digest in one.digests or ())
        first = min(held, key=lambda one: (-one.looks, one.evidence))
        day, looks = max(one.day for one in held), sum(one.looks for one in held)
        merged.append(Block(group, digests, cause, first.evidence, day, looks))
    return merged
