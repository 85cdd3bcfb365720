"""What a gateway saw when it looked a request up, as it goes into the request log.

One JSON object in the row's field `cache_evidence`. It holds keys and digests, never a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

FIELD = "cache_evidence"
"""Name of the field in a canonical request."""

Found = Literal["hit", "absent", "below_threshold", "guard_refused", "error"]
Bypass = Literal["header", "parameter"]


def salt_digest(salt: str) -> str:
    """Return the digits under which evidence tells a salt."""
    return hashlib.sha256(salt.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Looked:
    """One look in one layer.

    Attributes:
        layer: Layer, with its tier where it has one: `responses`, `embeddings.l1`.
        found: What the look gave.
        key: The key asked for, or the index where a similar one was sought.
        nearest: Key of the nearest entry, where one was near.
        similarity: Cosine with it.
        threshold: The cosine it had to reach.
        error: Class name of what went wrong; never its message.
        characters: Length of the text that the key was made of; None: not noted.
        fields: Names of the request's fields that the key holds besides those of docs/keys.md.
    """

    layer: str
    found: Found
    key: str
    nearest: str | None = None
    similarity: float | None = None
    threshold: float | None = None
    error: str | None = None
    characters: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All looks of one request, and where it went.

    Attributes:
        looked: Every look, in order; empty: none was made.
        bypass: What told the reader to look nowhere; None: nothing did.
        secret_id: Which key secret the keys were made under.
        encoder: Fingerprint of the encoder of the similar look; None: there was none.
        template: Hash of the chat template that the keys hold; None: they hold none.
        redis_epoch: Identity of the Redis process (`run_id`), which changes at a restart.
        host: Name of the model host that the request was sent to; None: it was sent to none.
        host_epoch: Identity of the host's process, as receipts have it.
        host_ready: Whether the host had said that it is ready; None: nobody asked.
        adapter: Name under which the adapter was asked of the host.
        salt: `salt_digest` of the `cache_salt` sent; None: none.
    """

    looked: tuple[Looked, ...] = ()
    bypass: Bypass | None = None
    secret_id: str | None = None
    encoder: str | None = None
    template: str | None = None
    redis_epoch: str | None = None
    host: str | None = None
    host_epoch: str | None = None
    host_ready: bool | None = None
    adapter: str | None = None
    salt: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready members, without the absent ones."""
        held = {k: v for k, v in asdict(self).items() if v is not None and k != "looked"}
        looked = [
            {k: v for k, v in asdict(one).items() if v not in (None, ())} for one in self.looked
        ]
        return {**held, "looked": looked}

    @staticmethod
    def from_dict(held: Mapping[str, Any]) -> Evidence:
        """Return the evidence in a log row; members that nobody knows are passed over.

        Raises:
            ValueError: It does not have this form; says which member, and nothing that it holds.
        """
        looked = _members(held, FIELD).get("looked", [])
        if not isinstance(looked, list):
            raise _another_form(f"{FIELD}.looked")
        looks = tuple(_looked(one) for one in looked)
        return Evidence(**_known(Evidence, {**held, "looked": looks}, FIELD))


def _looked(held: Any) -> Looked:
    place = f"{FIELD}.looked"
    known = dict(_members(held, place))
    if isinstance(known.get("fields"), list):
        known["fields"] = tuple(known["fields"])
    if missing := {"layer", "found", "key"} - set(known):
        raise _another_form(f"{place}.{min(missing)}")
    return Looked(**_known(Looked, known, place))


def _known(form: type, held: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the members that a form has, all of the type that it says."""
    types = _types(form)
    for name in types:
        if name in held and not _fits(held[name], types[name]):
            raise _another_form(f"{place}.{name}")
    return {name: held[name] for name in types if name in held}


_types = cache(get_type_hints)


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if kinds := get_args(hint):
        return any(_fits(value, kind) for kind in kinds)
    return isinstance(value, int | float if hint is float else hint)


def _members(held: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(held, Mapping):
        raise _another_form(place)
    return held


def _another_form(place: str) -> ValueError:
    return ValueError(f"{place} is not as warmup_lib/evidence.py has it")
