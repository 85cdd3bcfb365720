"""Which part of a key is not as it should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warmup_lib.causes import Cause
from warmup_lib.keys import Parts


def by_part(asked: Parts, own: Parts, scopes: Mapping[str, str]) -> tuple[Cause, str] | None:
    """Return what a part that stands by itself shows; None: these parts are right.

    Args:
        asked: The key that was asked for.
        own: The key that it should have been.
        scopes: A tenant's digest -> a word that says which tenant it is.
    """
    if asked.secret_id != own.secret_id:
        return Cause.KEY_DIMENSION, f"secret_id={asked.secret_id[:12]} own={own.secret_id}"
    if asked.tenant != own.tenant:
        who = scopes.get(asked.tenant, "unknown")
        return Cause.KEY_TENANT, f"tenant_digest={asked.tenant[:16]} is={who} own={own.tenant}"
    if asked.encoder != own.encoder:
        return Cause.KEY_ENCODER, f"encoder={asked.encoder[:16] or 'none'} own={own.encoder}"
    return None


def nearest(asked: Parts, own: Sequence[Parts]) -> Parts:
    """Return the key that shares most parts with the asked one; of equal ones the first."""
    return max(own, key=lambda one: sum(a == b for a, b in zip(asked, one, strict=True)))
