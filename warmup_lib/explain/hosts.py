"""What evidence shows of a model host: asked before it began, or under another name or salt."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from warmup_lib.causes import Cause
from warmup_lib.evidence import Evidence, salt_digest
from warmup_lib.explain.known import Known
from warmup_lib.explain.miss import PREFIXES, Asked, Miss, Verdict
from warmup_lib.places import Places


class Hosts:
    """Judges prefixes that a host had not, by how the host was asked.

    Args:
        places: Under which names adapters are served.
        known: What the history knows.
        salted: The hosts whose requests carry a derived salt.
    """

    def __init__(self, places: Places, known: Known, salted: Collection[str]) -> None:
        self._places = places
        self._known = known
        self._salted = salted

    def settle(self, misses: Sequence[Miss]) -> list[Verdict | None]:
        """Return the verdict on each miss; None: it was asked as it should be."""
        return [self._judge(miss) if miss.layer == PREFIXES else None for miss in misses]

    def _judge(self, miss: Miss) -> Verdict | None:
        seen = miss.evidence
        if seen is None:
            return None
        if early := _too_early(miss.asked, seen):
            return Verdict(Cause.HOST_NOT_READY, early)
        served = self._places.adapter(miss.asked.adapter)
        if seen.adapter is not None and seen.adapter != served:
            return Verdict(Cause.KEY_ADAPTER, f"adapter={seen.adapter[:80]} served={served}")
        if miss.target in self._salted:
            return self._by_salt(miss.asked, served, seen)
        return None

    def _by_salt(self, asked: Asked, served: str | None, seen: Evidence) -> Verdict | None:
        keys = self._places.keys
        if seen.salt == salt_digest(keys.salt(asked.tenant, served)):
            return None
        if seen.salt is None:
            return Verdict(Cause.KEY_TENANT, "salt=none: it is shared by all tenants")
        for cause, told, salt in self._salts(asked, served, seen):
            if seen.salt == salt_digest(salt):
                return Verdict(cause, told)
        return Verdict(Cause.KEY_DIMENSION, "salt=of something else than tenant and adapter")

    def _salts(
        self, asked: Asked, served: str | None, seen: Evidence
    ) -> Iterator[tuple[Cause, str, str]]:
        keys = self._places.keys
        names = {asked.adapter, *self._known.adapters, *self._places.adapters.values(), None}
        for adapter in sorted(names - {served}, key=str):
            told = f"salt=of adapter {str(adapter)[:80]}"
            yield Cause.KEY_ADAPTER, told, keys.salt(asked.tenant, adapter)
        for tenant in sorted(self._known.tenants - {asked.tenant}):
            yield Cause.KEY_TENANT, "salt=of another tenant", keys.salt(tenant, served)
        for template in sorted({seen.template or "", ""} - {keys.template}):
            salt = keys.other(template).salt(asked.tenant, served)
            yield Cause.KEY_TEMPLATE, f"salt=of template {template or 'none'}", salt


def _too_early(asked: Asked, seen: Evidence) -> str | None:
    """Return what shows that a host was asked too early; None: nothing does."""
    begun = _start(seen.host_epoch)
    if begun is not None and begun > asked.ts.timestamp():
        return f"asked_before_start_s={begun - asked.ts.timestamp():.3f}"
    return None


def _start(epoch: str | None) -> float | None:
    """Return when a host's process began, epoch seconds; None: its epoch does not say it."""
    try:
        return float(epoch or "")
    except ValueError:
        return None
