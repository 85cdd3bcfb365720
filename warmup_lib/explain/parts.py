"""A key taken apart as docs/keys.md lays it out, and which part of it is not as it should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warmup_lib.causes import Cause
from warmup_lib.keys import KEY_VERSION

_WITHOUT_ENCODER, _WITH_ENCODER = 6, 7
_INDEX = 5
_HEX = frozenset("0123456789abcdef")


class Parts(NamedTuple):
    """The parts of a key or of an index, which ends with the encoder.

    Attributes:
        secret_id: Which secret it was made under.
        tenant: The tenant's digest.
        layer: The layer's word.
        encoder: The encoder's fingerprint; empty: it holds no vector.
        place: The digest of model, revision and adapter; empty: an index.
        digest: The digest; empty: an index.
        rest: What stands after it, which no key has.
    """

    secret_id: str
    tenant: str
    layer: str
    encoder: str
    place: str
    digest: str
    rest: str = ""


def take_apart(key: str) -> Parts | None:
    """Return the parts of a key; None: it is none of this version."""
    version, *parts = key.split(":")
    if version != KEY_VERSION or len(parts) + 1 < _INDEX:
        return None
    secret, tenant, layer, *tail = parts
    if len(tail) == 1:
        return Parts(secret, tenant, layer, tail[0], "", "")
    encoder = tail.pop(0) if len(tail) > 2 and _is_hex(tail[0], 16) else ""
    place, digest, *rest = tail
    cut = digest[:32]
    left = ":".join([digest[32:], *rest]).strip(":")
    return Parts(secret, tenant, layer, encoder, place, cut, left)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= _HEX


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
