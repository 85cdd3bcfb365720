"""A key taken apart as docs/keys.md lays it out."""

from __future__ import annotations

from typing import NamedTuple

from warmup_lib.keys.build import KEY_VERSION

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
