"""Identities and keys.

An identity is taken from whole content, before any truncation or redaction, with HMAC-SHA256
under the key secret, so that a digest can't be reversed by guessing. A key names version, secret,
tenant, layer, model and adapter, in that order, and can't be built without a tenant.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.keys.params import canonical_params, to_json
from warmup_lib.keys.request import (
    Dimension,
    Request,
    canonical_history,
    canonical_tools,
    check_tenant,
    field_within,
)
from warmup_lib.keys.text import canonical_text, embedding_text

KEY_VERSION = "wu1"

_SERVING = ("tenant", "model", "model_revision", "adapter", "template")

FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("prompt",),
    "context": (*_SERVING, "system_prompt", "history", "tools", "params", "dimensions"),
    "response": ("context", "prompt"),
    "head": (*_SERVING, "system_prompt", "tools"),
    "user_segment": ("user_segment",),
    "chunk": ("chunk_id",),
    "tenant": ("tenant",),
    "place": ("model", "model_revision", "adapter"),
    "under": ("context", "adapter"),
    "salt-a": ("tenant", "adapter", "template"),
    "salt-b": ("tenant", "adapter", "template"),
}
"""The domains of digests, each with its parts in their order; no other field can split a key.

`response` and `under` begin with the digest `context`. `template` is the chat template's hash.
"""


@dataclass(frozen=True)
class Identity:
    """The four digests of one request (32 hex digits each).

    Attributes:
        text: Of the last user text, case folded; the same for every tenant and model.
        context: Of all that an answer depends on but the last user text.
        response: Of all that an answer depends on.
        head: Of system prompt and tools as sent, which is what a KV prefix can share.
    """

    text: str
    context: str
    response: str
    head: str


def key_hash(key: str) -> str:
    """Return 16 hex digits that stand for a key where the key itself is too much, as in spans."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Keys:
    """Builds identities and keys under one secret.

    Args:
        secret: HMAC secret, at least 16 bytes.
        template: Hash of the chat template in use; part of every answer's identity.
        dimensions: Further fields of requests that change answers, by name.
    """

    def __init__(
        self,
        secret: bytes,
        template: str = "",
        dimensions: Mapping[str, Dimension] | None = None,
    ) -> None:
        if len(secret) < 16:
            raise InputDataError("the key secret must be at least 16 bytes")
        self._secret = secret
        self._template = template
        self._dimensions = dict(dimensions or {})
        self.secret_id = hashlib.sha256(b"warmup-secret-id\0" + secret).hexdigest()[:6]

    @property
    def template(self) -> str:
        """Hash of the chat template in use; empty: none."""
        return self._template

    def other(self, template: str, more: Mapping[str, Dimension] | None = None) -> Keys:
        """Return a builder with the same secret for another chat template or more dimensions."""
        return Keys(self._secret, template, {**self._dimensions, **(more or {})})

    def dimensions_in(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request's fields, `extra` and `params` among them, hold of dimensions."""
        return {name: field_within(fields, name) for name in self._dimensions}

    def digest(self, domain: str, *parts: str) -> str:
        """Return 32 hex digits over `domain` and `parts`, each with its length before it."""
        return _digest(self._secret, domain, *parts)

    def text_digest(self, text: str) -> str:
        """Return the identity of a text for embeddings."""
        return self.digest("text", embedding_text(text))

    def segment_digest(self, segment: str) -> str:
        """Return the identity of a user segment, which the tenant in the key makes one's own."""
        return self.digest("user_segment", segment)

    def chunk_digest(self, chunk_id: str) -> str:
        """Return the identity of a chunk of a tenant's documents."""
        return self.digest("chunk", chunk_id)

    def identity(self, request: Request) -> Identity:
        """Return the digests of a request.

        Raises:
            InputDataError: The tenant is none, or a part can't be written as JSON.
        """
        tools = canonical_tools(request.tools)
        head = {
            "tenant": check_tenant(request.tenant),
            "model": request.model,
            "model_revision": request.model_revision or "",
            "adapter": request.adapter or "",
            "template": self._template,
            "system_prompt": request.system_prompt or "",  # the KV cache sees every space
            "tools": tools,
        }
        context = self._over(
            "context",
            {
                **head,
                "system_prompt": canonical_text(request.system_prompt or ""),
                "history": canonical_history(request.history),
                "params": canonical_params(request.params),
                **self._dimensions_of(request),
            },
            again=not request.history,
        )
        prompt = canonical_text(request.prompt)
        return Identity(
            text=self.text_digest(request.prompt),
            context=context,
            response=self._over("response", {"context": context, "prompt": prompt}),
            head=self._over("head", head, again=True),
        )

    def scope(self, tenant: str) -> str:
        """Return the 16 hex digits that stand for a tenant in keys and index names."""
        return _remembered(self._secret, "tenant", check_tenant(tenant))[:16]

    def key(
        self,
        layer: str,
        tenant: str,
        digest: str,
        *,
        model: str = "",
        model_revision: str | None = None,
        adapter: str | None = None,
    ) -> str:
        """Return the key of one entry.

        Raises:
            InputDataError: The tenant is empty or a wildcard.
        """
        return f"{self.prefix(layer, tenant)}{self._place(model, model_revision, adapter)}:{digest}"

    def prefix(self, layer: str, tenant: str) -> str:
        """Return what every key of a layer and tenant begins with, `:` included."""
        return f"{KEY_VERSION}:{self.secret_id}:{self.scope(tenant)}:{layer}:"

    def index(self, layer: str, tenant: str, encoder: str) -> str:
        """Return the name of a tenant's search index under one encoder."""
        return f"{self.prefix(layer, tenant)}{encoder}"

    def ledger(self, name: str) -> str:
        """Return the key of what the planner notes about its own entries, of all tenants."""
        return f"{KEY_VERSION}:{self.secret_id}:{name}"

    def under(self, context: str, adapter: str) -> str:
        """Return a context's digest for one state of its adapter's weights.

        Args:
            context: Digest of a context, in which the adapter has its name in the log.
            adapter: The name under which its weights are served, which holds their hash.
        """
        return self.digest("under", context, adapter)

    def salt(self, tenant: str, adapter: str | None = None) -> str:
        """Return the derived `cache_salt`: 64 hex digits over tenant, adapter and template."""
        parts = (check_tenant(tenant), adapter or "", self._template)
        return self.digest("salt-a", *parts) + self.digest("salt-b", *parts)

    def _over(self, domain: str, parts: Mapping[str, str], *, again: bool = False) -> str:
        """Return the digest of a domain over its fields; one that is not in `parts` is no part.

        Args:
            domain: The domain.
            parts: The fields.
            again: Other requests are likely to ask for the same one.
        """
        fields = [parts[name] for name in FIELDS[domain] if name in parts]
        if again and sum(map(len, fields)) <= _REMEMBERED_SIZE:
            return _shared(self._secret, domain, *fields)
        return _digest(self._secret, domain, *fields)

    def _dimensions_of(self, request: Request) -> dict[str, str]:
        """Return the part that configured dimensions make; none where all have their defaults."""
        given = {
            name: value
            for name, dimension in self._dimensions.items()
            if (value := dimension.value(request.dimensions.get(name)))
        }
        return {"dimensions": to_json(given)} if given else {}

    def _place(self, model: str, revision: str | None, adapter: str | None) -> str:
        return _remembered(self._secret, "place", model, revision or "", adapter or "")[:12]


def _digest(secret: bytes, *parts: str) -> str:
    pieces = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        pieces += [len(data).to_bytes(8, "big"), data]
    return hmac.digest(secret, b"".join(pieces), "sha256").hex()[:32]


_remembered = lru_cache(maxsize=4096)(_digest)
"""Of tenants and places: a lookup asks for a few of them again and again."""

_shared = lru_cache(maxsize=1024)(_digest)
"""Of heads and contexts, whose texts are long."""
_REMEMBERED_SIZE = 64 * 1024
"""Most characters of such a one."""
