"""What the traps share: one finding from one input, and all findings of a trap as one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "found", "not_checked"]

TRAPS = (
    "weight_shards",
    "tokenisation",
    "kv_length",
    "tenant",
    "bypass",
    "key_dimensions",
    "out_of_step",
)


@dataclass(frozen=True)
class Part:
    """What one input says of one trap, or all of them together.

    Attributes:
        status: `found`: the trap is there; `not_checked`: this input could not tell.
        evidence: What was seen, or why it could not be looked at; no prompt, key or secret.
        remedy: What to do; empty where nothing was found.
    """

    status: Status
    evidence: str
    remedy: str = ""


def joined(parts: Sequence[Part], needs: str) -> Part:
    """Return what all inputs together say of a trap.

    One input in which it is found is enough; where none shows it, one that could tell is.

    Args:
        parts: What each input that was given says.
        needs: Which inputs would tell, where none was given.
    """
    if not parts:
        return Part("not_checked", f"give {needs}")
    order: tuple[Status, ...] = ("found", "ok", "not_checked")
    status = next(one for one in order if any(part.status == one for part in parts))
    decisive = [part for part in parts if part.status == status]
    others = [part for part in parts if part.status == "not_checked" != status]
    told = [part.evidence for part in decisive]
    told += [f"not checked: {part.evidence}" for part in others]
    remedies = dict.fromkeys(part.remedy for part in decisive if part.remedy)
    return Part(status, "; ".join(told), " ".join(remedies))


def counted(count: int, what: str) -> str:
    """Return a count with its noun, such as `1 key` and `1,200 keys`."""
    return f"{count:,} {what}{'' if count == 1 else 'es' if what.endswith('x') else 's'}"
