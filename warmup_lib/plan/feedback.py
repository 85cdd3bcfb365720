"""What earlier plans teach the next one: what is asked for in vain, and what was never hit.

The first is left out until it is asked for as it should be. The second counts for less: the
forecast's mean `m` of an item is taken as uncertain, with the weight of one hit, so that after
days on which it stood ready, `E` hits were expected and none came, `m / (1 + E)` is expected
(the mean of a Gamma distribution after Poisson counts of 0).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.layers.rows import refused_rows
from warmup_lib.plan.blocks import NEVER_HIT, Block
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import ints, joined, place_of
from warmup_lib.plan.sources.proposed import Proposals
from warmup_lib.tables import INT, LEFT_OUT, MICRO, STR

BLOCKED = "blocked"
"""Under this name the plan's inputs hold the digest of what is blocked."""

_DAYS = 3
"""Days without a hit from which an item counts for less: what is asked on working days has two of
them each week (docs/adr/0020-feedback.md)."""


@dataclass(frozen=True)
class Unhit:
    """One item that stood ready on several days in a row, on which nobody asked for it.

    Attributes:
        heat: By day, what was expected of it then, in millionths of a request.
    """

    heat: tuple[int, ...]

    @staticmethod
    def of(days: Mapping[str, Sequence[int]]) -> dict[str, Unhit]:
        """Return the items with enough of such days; their heat by item and day."""
        return {item: Unhit(tuple(heat)) for item, heat in days.items() if len(heat) >= _DAYS}

    @property
    def expected(self) -> float:
        """The hits that were expected on those days."""
        return sum(self.heat) / MICRO

    @property
    def reason(self) -> str:
        """Why it is left out, as in the `left_out` table."""
        return f"{NEVER_HIT}: none in {len(self.heat)} days"

    @property
    def says(self) -> str:
        """What a plan that holds it says of it."""
        return (
            f"on the last {len(self.heat)} days it stood ready, {self.expected:,.1f} were expected "
            "and none came"
        )

    def left(self, heat: int) -> int:
        """Return what is left of an expectation, in millionths of a request a day.

        What the forecast has taken back itself since then is not held against the item again.
        """
        missed = sum(min(then, heat) for then in self.heat) / MICRO
        return int(heat / (1 + missed))


@dataclass(frozen=True)
class Heeded:
    """A layer's candidates after what earlier plans teach.

    Attributes:
        candidates: What may be chosen, with what is left of their heat.
        prompts: The demand with the same heat; other texts keep theirs.
        refused: What is left out, rows of the `left_out` table.
    """

    candidates: pa.Table
    prompts: pa.Table
    refused: pa.Table


@dataclass(frozen=True)
class Feedback:
    """What earlier plans teach.

    Attributes:
        blocks: What is asked for in vain.
        unhit: What was never hit, by item id.
    """

    blocks: Sequence[Block] = ()
    unhit: Mapping[str, Unhit] = field(default_factory=dict)

    def digest(self) -> dict[str, str]:
        """Return digests of both under their names; none of what there is not."""
        learned = {
            BLOCKED: [(b.group, b.digests and sorted(b.digests), b.reason) for b in self.blocks],
            "unhit": sorted((item, one.heat) for item, one in self.unhit.items()),
        }
        return {
            name: hashlib.sha256(repr(said).encode()).hexdigest()[:16]
            for name, said in learned.items()
            if said
        }

    def facts(self, left_out: pa.Table, items: pa.Table) -> dict[str, Any]:
        """Return what a plan's report says of it.

        Args:
            left_out: The plan's rows of `left_out`.
            items: Its items.
        """
        never = pc.starts_with(left_out["reason"], f"{NEVER_HIT}: none")
        return {
            "blocked": [_told(block, left_out) for block in self.blocks],
            "never_hit": {
                "left_out": pc.sum(never, min_count=0).as_py(),
                "planned": int(_among(items["item_id"], self.unhit).sum()),
            },
        }

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each block."""
        return tuple(block.says for block in self.blocks)

    def without(self, items: pa.Table) -> pa.Table:
        """Return items that are not blocked, rows of the `plan` table."""
        stopped = np.zeros(items.num_rows, np.bool_)
        for block in self.blocks:
            stopped |= _blocked(block, items)
        return items.filter(pa.array(~stopped))

    def heed(self, candidates: pa.Table, prompts: pa.Table, proposals: Proposals) -> Heeded:
        """Return what may be chosen of a layer.

        What is only named, by a list or another source, and that nobody asks for, is left out once
        it was never hit; what is pinned stays.

        Args:
            candidates: The layer's candidates.
            prompts: The demand's prompts.
            proposals: What the sources propose.
        """
        if not candidates.num_rows:
            return Heeded(candidates, prompts, LEFT_OUT.empty())
        words = np.full(candidates.num_rows, None, np.object_)
        for block in self.blocks:
            words[_blocked(block, candidates)] = block.reason
        heat, ids = ints(candidates["heat_micro"]).copy(), candidates["item_id"]
        unhit = np.flatnonzero(_among(ids, self.unhit))
        for place in _unasked(candidates, unhit[heat[unhit] == 0], proposals):
            words[place] = self.unhit[ids[place].as_py()].reason
        for place in unhit.tolist():
            heat[place] = self.unhit[ids[place].as_py()].left(int(heat[place]))
        lowered = candidates.take(pa.array(unhit, INT))
        prompts = _lowered(prompts, lowered, heat[unhit])
        at = candidates.column_names.index("heat_micro")
        candidates = candidates.set_column(at, "heat_micro", pa.array(heat, INT))
        kept = np.array([word is None for word in words], np.bool_)
        layer, out = candidates["layer"][0].as_py(), candidates.filter(pa.array(~kept))
        refused = refused_rows(layer, out, "key_digest", pa.array(words[~kept], STR))
        return Heeded(candidates.filter(pa.array(kept)), prompts, refused)

    def told(self, rows: pa.Table) -> pa.Table:
        """Return plan rows whose reasons say what was never hit."""
        places = np.flatnonzero(_among(rows["item_id"], self.unhit)).tolist()
        if not places:
            return rows
        reasons = rows["reason"].to_pylist()
        for place in places:
            reasons[place] += f"; {self.unhit[rows['item_id'][place].as_py()].says}"
        return rows.set_column(rows.column_names.index("reason"), "reason", pa.array(reasons, STR))

    def blamed(self, ids: pa.ChunkedArray) -> dict[int, str]:
        """Return the rows of candidates that would have had a hit or more, and had none.

        Returns:
            Row -> why it is left out, where it is.
        """
        places = np.flatnonzero(_among(ids, self.unhit)).tolist()
        found = {place: self.unhit[ids[place].as_py()] for place in places}
        return {place: one.reason for place, one in found.items() if one.expected >= 1}


def any_never_hit(items: pa.Table, refused: pa.Table) -> bool:
    """Return whether some items are left out now because they were never hit.

    Args:
        items: Rows of the `plan` table.
        refused: Rows of the `left_out` table.
    """
    never = refused.filter(pc.starts_with(refused["reason"], NEVER_HIT))
    known = joined(never["layer"], never["tenant"], never["digest"])
    ours = joined(items["layer"], items["tenant"], items["key_digest"])
    return bool((place_of(ours, known) >= 0).any())


def _among(ids: pa.ChunkedArray, known: Mapping[str, Any]) -> Mask:
    return np.asarray(pc.is_in(ids, value_set=pa.array(known, STR)), dtype=np.bool_)


def _blocked(block: Block, items: pa.Table) -> Mask:
    tenant, layer, tier = block.group
    mask = pc.and_(pc.equal(items["tenant"], tenant), pc.equal(items["layer"], layer))
    of_tier = pc.is_null(items["tier"]) if tier is None else pc.equal(items["tier"], tier)
    mask = pc.and_(mask, pc.fill_null(of_tier, False))
    if block.digests is not None:
        known = pa.array(sorted(block.digests), STR)
        mask = pc.and_(mask, pc.is_in(items["key_digest"], value_set=known))
    return np.asarray(mask, dtype=np.bool_)


def _unasked(candidates: pa.Table, places: Ints, proposals: Proposals) -> list[int]:
    """Return which of some candidates are there because a source names them, and not pinned."""
    found = []
    tiers = candidates["tier"].take(pa.array(places, INT)).to_pylist()
    for tier in dict.fromkeys(tiers):
        ours = places[[one == tier for one in tiers]]
        rows = candidates.take(pa.array(ours))
        kept, by = proposals.of(rows["layer"][0].as_py(), tier, rows)
        wanted = kept.filter(pa.array(by.named & ~by.pinned))["item_id"]
        found += ours[_among(rows["item_id"], dict.fromkeys(wanted.to_pylist()))].tolist()
    return found


def _lowered(prompts: pa.Table, items: pa.Table, heat: Ints) -> pa.Table:
    """Return the demand with the heat that is left of what answers the very same requests."""
    place = place_of(
        joined(prompts["tenant"], prompts["response_digest"]),
        joined(items["tenant"], items["key_digest"]),
    )
    if (place < 0).all():
        return prompts
    left = np.where(place < 0, ints(prompts["heat_micro"]), heat[place])
    at = prompts.column_names.index("heat_micro")
    return prompts.set_column(at, "heat_micro", pa.array(left, INT))


def _told(block: Block, left_out: pa.Table) -> dict[str, Any]:
    tenant, layer, tier = block.group
    ours = pc.and_(pc.equal(left_out["tenant"], tenant), pc.equal(left_out["layer"], layer))
    ours = pc.and_(ours, pc.equal(left_out["reason"], block.reason))
    return {
        "tenant": tenant,
        "layer": layer,
        "tier": tier,
        "items": pc.sum(ours, min_count=0).as_py(),
        "whole": block.digests is None,
        "cause": block.cause.value,
        "evidence": block.evidence,
        "look_ups": block.looks,
        "day": block.day,
        "remedy": block.cause.remedy,
        "link": block.cause.link,
    }
