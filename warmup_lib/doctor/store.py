"""A Redis as the traps look at it: its cached answers, what their keys hold, its search indexes."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warmup_lib.doctor.base import Part
from warmup_lib.keys import canonical_text, take_apart

ENOUGH = 1000
"""So many answers out of more tell enough: `SCAN` gives keys in the order of their hashes."""

_NOT_SEEN = 3
"""What none of n drawn answers shows, less than 3 of n have (with 95 % confidence)."""

_TENANT = re.compile(r"(?:tenant|org|organi[sz]ation|team|customer|account|workspace)(?:_?id)?")
_DIMENSION = re.compile(
    r"(?:user|device|platform|region|country|locale|lang(?:uage)?|hour|arm|ab|variant|session|"
    r"segment|channel|client|browser|os)(?:_?(?:id|arm|test|type))?"
)
SEPARATOR = re.compile(r"[:|/]+")
_LABELLED = re.compile(r"(?P<name>[A-Za-z_]+)[=~-](?P<value>.+)")
DIGEST = re.compile(r"[0-9a-f]{16,}|[0-9a-fA-F-]{32,36}|[A-Za-z0-9_-]{43,44}=?|\d{9,}")
_VALUE = re.compile(
    r"(?P<locale>[a-z]{2}(?:[-_][A-Za-z]{2,4})?)|(?P<device>mobile|desktop|tablet|web|ios|android|"
    r"phone|pc|app)|(?P<hour>h?(?:[01]?\d|2[0-3]))|(?P<arm>[ab]|control|treatment|arm\w*|variant\w*)"
    r"|(?P<region>(?:eu|us|ap|sa|af|me|ca|cn)-[a-z0-9-]+|emea|apac|amer)|(?P<user>u(?:ser)?[-_]?\d\w*)",
)


@dataclass(frozen=True)
class Stored:
    """One cached answer.

    Attributes:
        key: Its key; never shown.
        content: Digest of question and answer; None: they can't be told.
        asked: Digest of its question in canonical text; None: it does not hold it.
        fields: Its further fields, such as the tags of an index.
    """

    key: str
    content: str | None
    asked: str | None
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def tenants(self) -> set[str]:
        """What names a tenant in its fields, labelled parts of its key, or our own form of key."""
        if (own := take_apart(self.key)) is not None:
            return {own.tenant}
        named = {value for name, value in self.fields.items() if _TENANT.fullmatch(name.lower())}
        labels = [_LABELLED.fullmatch(part) for part in self.parts]
        named |= {m["value"] for m in labels if m and _TENANT.fullmatch(m["name"].lower())}
        # `tenant:acme:...`: the label is a part of its own.
        named |= {
            value
            for name, value in zip(self.parts, self.parts[1:], strict=False)
            if _TENANT.fullmatch(name.lower())
        }
        return named

    @property
    def parts(self) -> list[str]:
        """The parts of its key."""
        return SEPARATOR.split(self.key)

    @property
    def free(self) -> list[str]:
        """The parts of its key that are no digest and say nothing that a dimension could say."""
        return [
            part
            for part in self.parts
            if not DIGEST.fullmatch(part) and not _VALUE.fullmatch(part.lower())
        ]

    def dimensions(self) -> dict[str, str]:
        """Return the dimensions in its key and fields, by name."""
        found = {n: v for n, v in self.fields.items() if _DIMENSION.fullmatch(n.lower())}
        for part in self.parts:
            if (label := _LABELLED.fullmatch(part)) and _DIMENSION.fullmatch(label["name"].lower()):
                found[label["name"]] = label["value"]
            elif (value := _VALUE.fullmatch(part.lower())) and take_apart(self.key) is None:
                found[str(value.lastgroup)] = part
        return found


@dataclass(frozen=True)
class Index:
    """A search index: its name, the prefixes of the keys in it, the names of its fields."""

    name: str
    prefixes: tuple[str, ...]
    fields: tuple[str, ...]

    def holds(self, key: str) -> bool:
        """Say whether a key is in it."""
        return any(key.startswith(prefix) for prefix in self.prefixes)


@dataclass(frozen=True)
class Kept:
    """What a Redis holds.

    Attributes:
        values: Cached answers.
        indexes: Search indexes.
        keys: Keys whose names were looked at.
        whole: Whether these were all, and all that look like cached answers were read.
    """

    values: tuple[Stored, ...]
    indexes: tuple[Index, ...]
    keys: int
    whole: bool

    @property
    def empty(self) -> str:
        """What there is to say where no answer was found."""
        part = "" if self.whole else f", as far as {self.keys:,} keys of it tell"
        return f"the Redis holds no cached answers{part}"

    def sound(self, evidence: str) -> Part:
        """Return that nothing was found, as far as what was looked at can tell it.

        Args:
            evidence: What was seen.
        """
        if self.whole:
            return Part("ok", evidence)
        told = (
            f"{evidence}; not all was looked at: {self.keys:,} keys, {len(self.values):,} answers"
        )
        if len(self.values) < ENOUGH:
            return Part("not_checked", told)
        return Part("ok", f"{told}, so that up to {_NOT_SEEN / len(self.values):.2%} can be others")

    def copies(self) -> list[list[Stored]]:
        """Return what is kept more than once: equal answers to one question of one tenant."""
        found: dict[tuple[Any, ...], list[Stored]] = defaultdict(list)
        for one in self.values:
            if one.content is not None:
                found[one.content, *sorted(one.tenants), None, *one.free].append(one)
        return [same for same in found.values() if len(same) > 1]


def differing(same: Sequence[Stored]) -> set[str]:
    """Return the names of the dimensions in which the keys or fields of one answer differ."""
    seen: dict[str, set[str]] = defaultdict(set)
    held = [one.dimensions() for one in same]
    for name in {name for one in held for name in one}:
        seen[name] = {one.get(name, "") for one in held}
    return {name for name, values in seen.items() if len(values) > 1}


def asked(question: str) -> str:
    """Return the digest by which questions in a Redis and in a log are compared."""
    return digest(canonical_text(question))


def digest(text: str) -> str:
    """Return a digest; half a surrogate pair, which JSON can hold, is a character too."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
