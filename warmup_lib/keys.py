"""The cache-key contract: canonical text, identities and keys. Nothing else may build a key.

An identity is taken from whole content, before any truncation or redaction, with HMAC-SHA256
under the key secret, so that a digest can't be reversed by guessing. A key names version, secret,
tenant, layer, model and adapter, in that order, and can't be built without a tenant.
docs/keys.md publishes the fields; tests/keys/vectors.json lets another language check its reader.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from warmup_lib.errors import InputDataError

KEY_VERSION = "wu1"

SAMPLING_DEFAULTS: Mapping[str, Any] = {
    "frequency_penalty": 0,
    "logit_bias": None,
    "max_tokens": None,
    "min_p": 0,
    "n": 1,
    "presence_penalty": 0,
    "repetition_penalty": 1,
    "response_format": None,
    "seed": None,
    "stop": None,
    "temperature": 1,
    "tool_choice": None,
    "top_k": -1,
    "top_p": 1,
}
"""The parameters that can change an answer, with the value that absence means. Every other
parameter (stream, user, metadata ...) is left out and so can't split the key space."""

_FENCE = re.compile(r"(```.*?(?:```|\Z))", re.DOTALL)
_SPACES = re.compile(r"[^\S\n]{2,}|[^\S\n ]")  # a single space is left alone: most are
_BLANK_LINES = re.compile(r"\s*\n\s*")
_FORBIDDEN_TENANT = re.compile(r"[*?%\s]*")


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


@dataclass(frozen=True)
class Request:
    """What of a request can change its answer. `history` are the messages between the two."""

    tenant: str
    model: str
    prompt: str
    system_prompt: str | None = None
    history: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Any] | None = None
    model_revision: str | None = None
    adapter: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


_REMEMBERED = 64 * 1024
"""Longest text remembered, in characters: system prompts repeat, and are folded once."""


def canonical_text(text: str) -> str:
    """Return `text` in NFKC with newlines and white space folded outside ``` code blocks.

    Letter case is kept: two prompts that differ in case may have different answers.
    """
    return _folded(text) if len(text) <= _REMEMBERED else _fold(text)


def _fold(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    pieces = _FENCE.split(text)
    folded = [
        piece
        if index % 2
        else _BLANK_LINES.sub("\n", _SPACES.sub(" ", unicodedata.normalize("NFKC", piece)))
        for index, piece in enumerate(pieces)
    ]
    return "".join(folded).strip()


_folded = lru_cache(maxsize=1024)(_fold)


def embedding_text(text: str) -> str:
    """Return what the encoder sees: the canonical text, case folded."""
    return canonical_text(text).casefold()


def canonical_params(params: Mapping[str, Any]) -> str:
    """Return the answer-changing parameters as JSON; absent, null and default are one value."""
    kept = {}
    for name, default in SAMPLING_DEFAULTS.items():
        value = params.get(name)
        if value is None or value == default:
            continue
        kept[name] = float(value) if isinstance(value, int | float) else value
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def key_hash(key: str) -> str:
    """Return 16 hex digits that stand for a key where the key itself is too much, as in spans."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def check_tenant(tenant: str) -> str:
    """Return the tenant, stripped.

    Raises:
        InputDataError: It is empty, a wildcard, or holds control characters.
    """
    name = unicodedata.normalize("NFC", tenant).strip()
    if _FORBIDDEN_TENANT.fullmatch(name):
        raise InputDataError("a tenant is needed: it may be neither empty nor a wildcard")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise InputDataError("a tenant may not hold control characters")
    return name


class Keys:
    """Builds identities and keys under one secret.

    Args:
        secret: HMAC secret, at least 16 bytes.
        template: Hash of the chat template in use; part of every answer's identity.
    """

    def __init__(self, secret: bytes, template: str = "") -> None:
        if len(secret) < 16:
            raise InputDataError("the key secret must be at least 16 bytes")
        self._secret = secret
        self._template = template
        self.secret_id = hashlib.sha256(b"warmup-secret-id\0" + secret).hexdigest()[:6]

    def digest(self, domain: str, *parts: str) -> str:
        """Return 32 hex digits over `domain` and `parts`, each with its length before it."""
        pieces = []
        for part in (domain, *parts):
            data = part.encode("utf-8", "surrogatepass")
            pieces += [len(data).to_bytes(8, "big"), data]
        return hmac.digest(self._secret, b"".join(pieces), "sha256").hex()[:32]

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
            InputDataError: The tenant is empty or a wildcard.
        """
        serving = self._serving(request)
        tools = _json(list(request.tools)) if request.tools else ""
        context = self.digest(
            "context",
            *serving,
            self._template,
            canonical_text(request.system_prompt or ""),
            _json([_canonical_message(m) for m in request.history]),
            tools,
            canonical_params(request.params),
        )
        return Identity(
            text=self.text_digest(request.prompt),
            context=context,
            response=self.digest("response", context, canonical_text(request.prompt)),
            head=self.digest("head", *serving, self._template, request.system_prompt or "", tools),
        )

    def scope(self, tenant: str) -> str:
        """Return the 16 hex digits that stand for a tenant in keys and index names."""
        return self.digest("tenant", check_tenant(tenant))[:16]

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

    def _serving(self, request: Request) -> tuple[str, str, str, str]:
        return (
            check_tenant(request.tenant),
            request.model,
            request.model_revision or "",
            request.adapter or "",
        )

    def _place(self, model: str, revision: str | None, adapter: str | None) -> str:
        return self.digest("place", model, revision or "", adapter or "")[:12]


def _canonical_message(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in message.items() if v is not None}
    if isinstance(kept.get("content"), str):
        kept["content"] = canonical_text(kept["content"])
    return kept


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
