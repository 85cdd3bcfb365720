"""One prompt under several cache keys: by what the keys differ, as far as the log tells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from warmup_lib.doctor.log import Key, Log, Row
from warmup_lib.keys import canonical_text

FEW = 3
"""So many prompts with several keys are a trap; fewer can be one reader's change of settings."""

_MOSTLY_NEW = 0.5
"""A field whose values are new in more than this share of the requests is an id, no dimension."""

Why = Literal["fields", "text", "volatile", "unexplained"]
Keyed = tuple[Row, Key]


@dataclass(frozen=True)
class Split:
    """One prompt of one tenant that was looked up under several keys.

    Attributes:
        why: `fields`: the keys hold fields that change no answer; `text`: they were made of
            another form of the text; `volatile`: every request has its own.
        keys: How many keys.
        requests: How many requests.
        layer: The layer of the keys.
        fields: The fields, where they are what differs.
    """

    why: Why
    keys: int
    requests: int
    layer: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Splits:
    """All splits of a log.

    Attributes:
        splits: The prompts with several keys.
        prompts: Prompts that were looked up more than once, with one key or several.
    """

    splits: tuple[Split, ...]
    prompts: int

    def of(self, *why: Why) -> list[Split]:
        """Return the splits of these kinds."""
        return [split for split in self.splits if split.why in why]


def find_splits(log: Log) -> Splits:
    """Return the prompts that were looked up under several keys of one layer."""
    groups = [group for group in _groups(log.rows).values() if len(group) > 1]
    several = [group for group in groups if len(_by_key(group)) > 1]
    candidates = _in_keys(several)
    return Splits(tuple(_split(group, candidates) for group in several), len(groups))


def _groups(rows: Iterable[Row]) -> Mapping[object, list[Keyed]]:
    """Return the looks of each prompt: what ought to have one key."""
    groups: dict[object, list[Keyed]] = defaultdict(list)
    rows = list(rows)
    usual = _usual_scopes(rows)
    for row in rows:
        identity = {"responses": row.response_digest, "embeddings": row.text_digest}
        for key in row.keys:
            if key.layer in identity and key.scope in (None, usual.get(row.tenant)):
                same = (key.layer, row.tenant, identity[key.layer], key.environment)
                groups[same].append((row, key))
    return groups


def _usual_scopes(rows: Iterable[Row]) -> dict[str, str]:
    """Return each tenant's own scope; looks under another's are no matter of one key or several."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.tenant].update(key.scope for key in row.keys if key.scope)
    return {tenant: scopes.most_common(1)[0][0] for tenant, scopes in counts.items() if scopes}


def _by_key(group: Sequence[Keyed]) -> dict[str, list[Row]]:
    keys: dict[str, list[Row]] = defaultdict(list)
    for row, key in group:
        keys[key.text].append(row)
    return keys


def _in_keys(several: Sequence[Sequence[Keyed]]) -> dict[str, bool]:
    """Return the fields that the keys may hold, and whether each is an id.

    A field is in the key where no two requests with one key differ in it, and where it differs
    between the keys of one prompt. Where no key comes again, nothing can be said.
    """
    if all(len(_by_key(group)) == len(group) for group in several):
        return {}
    differs: set[str] = set()
    contradicted: set[str] = set()
    values: dict[str, set[str]] = defaultdict(set)
    rows = 0
    for group in several:
        by_key = _by_key(group)
        everywhere = [row.fields for same in by_key.values() for row in same]
        rows += len(everywhere)
        names = {name for fields in everywhere for name in fields}
        for name in names:
            found = [{row.fields.get(name, "") for row in same} for same in by_key.values()]
            if any(len(one) > 1 for one in found):
                contradicted.add(name)
            if len(set().union(*found)) > 1:
                differs.add(name)
            values[name] |= set().union(*found)
    kept = differs - contradicted
    return {name: len(values[name]) > _MOSTLY_NEW * rows for name in kept}


def _split(group: Sequence[Keyed], candidates: Mapping[str, bool]) -> Split:
    by_key = _by_key(group)
    size = (len(by_key), len(group), group[0][1].layer)
    if noted := sorted({name for _, key in group for name in key.fields}):
        return Split("fields", *size, tuple(noted))
    if any(_other_length(row, key) for row, key in group):
        return Split("text", *size)
    if _explains([row.prompt for row, _ in group], [key.text for _, key in group]):
        return Split("text", *size)
    varying = [name for name in sorted(candidates) if _varies(group, name)]
    stable = [name for name in varying if not candidates[name]]
    if stable and _determine(by_key, stable):
        return Split("fields", *size, tuple(stable))
    ids = [name for name in varying if candidates[name]]
    each_its_own = all(len(rows) == 1 for rows in by_key.values())
    if (ids and _determine(by_key, ids)) or (each_its_own and len(by_key) >= FEW):
        return Split("volatile", *size, tuple(ids))
    return Split("unexplained", *size)


def _other_length(row: Row, key: Key) -> bool:
    """Say whether a key was noted to be made of less or more than the canonical text."""
    whole: str = row.prompt
    return (
        key.characters is not None
        and not row.redacted
        and key.characters != len(canonical_text(whole))
    )


def _varies(group: Sequence[Keyed], name: str) -> bool:
    return len({row.fields.get(name, "") for row, _ in group}) > 1


def _explains(values: Sequence[str], keys: Sequence[str]) -> bool:
    """Say whether two requests share a key exactly where they share the value."""
    pairs = set(zip(values, keys, strict=True))
    return len(pairs) == len(set(values)) == len(set(keys))


def _determine(by_key: Mapping[str, Sequence[Row]], names: Sequence[str]) -> bool:
    """Say whether no two keys agree in all of these fields."""
    places = [tuple(rows[0].fields.get(name, "") for name in names) for rows in by_key.values()]
    return len(set(places)) == len(places)
