"""Trap `tenant`: keys, indexes and KV that mix tenants, and defaults in a tenant's place."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable

from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log, Row
from warmup_lib.doctor.splits import FEW
from warmup_lib.doctor.store import Index, Kept, Stored, asked
from warmup_lib.keys import FALLBACK_TENANTS, Keys, take_apart
from warmup_lib.targets.chat import Chat, Head, own
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.metrics import cache_size

_NAMES = frozenset({"global", "public", "shared"})
"""Defaults by which a tenant can be called, too: sessions that name a real tenant as well tell."""

_CACHE = re.compile(
    r"(?:llm|chat|gpt|prompts?|responses?|answers?|completions?|embeddings?|semantic|exact)?[_-]?"
    r"(?:cached?|v\d+)?",
    re.IGNORECASE,
)

IN_EVERY_KEY = (
    "Put the tenant into every key, with no default (docs/keys.md); where one Redis for each "
    "tenant is possible, that is the stronger way."
)
_OWN_INDEX = "Give each tenant an index of its own: a search without a filter crosses tenants."
_NAMED = "Refuse requests that name no tenant instead of giving them a default one."
_SALTS = (
    "Send a `cache_salt` for each tenant, on a host that keeps salts apart, or give tenants hosts "
    "of their own."
)


def look_at_log(log: Log, keys: Keys) -> Part:
    """Look for tenants that share a key or use another's, and for defaults in a tenant's place.

    Args:
        log: The log.
        keys: Builder of the keys: only under the same secret a key's tenant can be compared.
    """
    told, remedies = [], []
    if several := _shared_keys(log.rows):
        told.append(f"shared by several tenants: {counted(len(several), 'key')}")
        remedies.append(IN_EVERY_KEY)
    if wrong := _other_scopes(log.rows, keys):
        told.append(f"looked up under another tenant's keys: {counted(wrong, 'request')}")
        remedies.append(IN_EVERY_KEY)
    defaults = _defaults(log)
    if defaults and log.tenants - defaults:
        count = sum(row.tenant in defaults for row in log.rows)
        told.append(f"with a default in the tenant's place: {counted(count, 'request')}")
        remedies.append(_NAMED)
    if log.nameless:
        told.append(f"without a tenant: {counted(log.nameless, 'row')}")
        remedies.append(_NAMED)
    if told:
        return Part("found", "; ".join(told), " ".join(dict.fromkeys(remedies)))
    looked = len({key.text for row in log.rows for key in row.keys})
    kept = f", and no key of {looked:,} is another's" if looked else ""
    return Part("ok", f"each request names one of {counted(len(log.tenants), 'tenant')}{kept}")


def _defaults(log: Log) -> set[str]:
    """Return what stands in the tenant's place where a request named none."""
    names = {name for name in log.tenants if name.strip().lower() in FALLBACK_TENANTS}
    sessions: dict[str, set[str]] = defaultdict(set)
    for row in log.rows:
        if row.session_id:
            sessions["" if row.tenant not in names else row.tenant].add(row.session_id)
    return {
        name
        for name in names
        if name.strip().lower() not in _NAMES or len(sessions[name] & sessions[""]) >= FEW
    }


def _shared_keys(rows: Iterable[Row]) -> set[str]:
    tenants: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for key in row.keys:
            tenants[key.text].add(row.tenant)
    return {key for key, names in tenants.items() if len(names) > 1}


def _other_scopes(rows: Iterable[Row], keys: Keys) -> int:
    """Return how many requests asked for keys or indexes of a tenant that is not theirs."""
    scopes: dict[str, str] = {}
    wrong = 0
    for row in rows:
        asked_for = [take_apart(look.key) for look in row.evidence.looked] if row.evidence else []
        ours = [key for key in asked_for if key is not None and key.secret_id == keys.secret_id]
        if ours and row.tenant not in scopes:
            scopes[row.tenant] = keys.scope(row.tenant)
        wrong += any(key.tenant != scopes[row.tenant] for key in ours)
    return wrong


def look_at_store(kept: Kept, log: Log | None) -> Part:
    """Look for cached answers whose keys name no tenant, and for indexes that several share.

    Args:
        kept: What the Redis holds.
        log: Requests, which tell whose questions are stored; None: not given.
    """
    if not kept.values and not kept.indexes:
        return Part("not_checked", kept.empty)
    asking = _asking(log)
    told, remedies = [], []
    if shared := [index for index in kept.indexes if _is_shared(index, kept, asking)]:
        told.append(f"with entries of several tenants: {counted(len(shared), 'search index')}")
        remedies.append(_OWN_INDEX)
    names = log.tenants if log else set()
    nameless = [one for one in kept.values if not _names_tenant(one, names)]
    if nameless:
        told.append(
            f"without a part in their key that could name a tenant: {len(nameless):,} of "
            f"{counted(len(kept.values), 'cached answer')}"
        )
        remedies.append(IN_EVERY_KEY)
    if told:
        return Part("found", "; ".join(told), " ".join(remedies))
    count = counted(len(kept.values), "cached answer")
    named = f"with a part in the key that could name a tenant: {count}"
    return kept.sound(f"{named}; no search index is shared")


def _asking(log: Log | None) -> dict[str, set[str]]:
    """Return who asks each question of a log."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in log.rows if log else ():
        found[asked(row.prompt)].add(row.tenant)
    return found


def _is_shared(index: Index, kept: Kept, asking: dict[str, set[str]]) -> bool:
    """Say whether entries of several tenants lie in one index.

    They say so themselves, or only one tenant asks their questions.
    """
    inside = [one for one in kept.values if index.holds(one.key)]
    if len({name for one in inside for name in one.tenants}) > 1:
        return True
    askers = [asking[one.asked] for one in inside if one.asked in asking]
    return len({name for names in askers if len(names) == 1 for name in names}) > 1


def _names_tenant(one: Stored, names: set[str]) -> bool:
    """Say whether a key, or a field that its index filters by, could name a tenant.

    A part that is no digest and that no dimension explains could, unless it is the first one,
    which names the cache, or a word for one. Where tenants are known, it must be one of theirs.
    """
    if one.tenants:
        return True
    others = [part for part in one.free[1:] if not _CACHE.fullmatch(part)]
    return any(part in names for part in one.parts) or (not names and bool(others))


async def look_at_host(host: ModelHost, model: str) -> Part:
    """Send one prompt under the salts of two tenants: the second must find nothing of the first.

    Args:
        host: The host.
        model: A served model.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: The host refuses the prompts.
    """
    block = cache_size(await host.metrics()).block
    text = " ".join(f"entry {n}" for n in range(2 * block))
    head = Head(model, text)

    async def cached(salt: str) -> int | None:
        answer = await host.chat(Chat(head, "Go on.", salt=salt, headers=own("doctor")))
        return answer.cached_tokens

    first, second = uuid.uuid4().hex, uuid.uuid4().hex
    await cached(first)
    same, other = await cached(first), await cached(second)
    if not same:
        return Part("not_checked", "the host reports no cached tokens for a repeated prompt")
    if other:
        told = f"{other:,} tokens cached for one tenant's salt were found under another's"
        return Part("found", told, _SALTS)
    return Part(
        "ok", f"the host keeps salts apart: {same:,} cached tokens with one, 0 with another"
    )
