"""Where each layer's entries lie on a Redis, and the fields of an answer: for planner and readers.

Pure arithmetic over `keys`: whoever writes an entry and whoever looks for it ask here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from warmup_lib.guard import tag
from warmup_lib.keys import Keys

EMBEDDINGS = "embeddings"
SYSTEM_PROMPTS = "embeddings.l1"
SEGMENTS = "embeddings.l2"
RETRIEVAL = "retrieval"
LISTS = "retrieval.l3"
RESPONSES = "responses"

ROUNDING = 1e-6
"""Cosines of Redis and of the planner differ by float32 rounding."""

NEIGHBOURS = 8
"""Near answers looked at: another plan's may be nearer than the one that is preferred."""


class Asking(Protocol):
    """What of a request or a plan item says where its entry lies."""

    @property
    def tenant(self) -> str:
        """The tenant."""

    @property
    def model(self) -> str:
        """The model."""

    @property
    def model_revision(self) -> str | None:
        """Its revision."""

    @property
    def adapter(self) -> str | None:
        """The adapter, by its name in the log."""


@dataclass(frozen=True)
class Places:
    """Where entries lie under one secret, one encoder and the present weights of adapters.

    Attributes:
        keys: The key builder.
        encoder: Fingerprint of the encoder; an entry that holds a vector has it in its key.
        adapters: Adapter in the log -> the name under which hosts serve its present weights.
        control: A fresh word, under which nothing was ever warmed; None: the tenants' own places.
    """

    keys: Keys
    encoder: str
    adapters: Mapping[str, str] = field(default_factory=dict)
    control: str | None = None

    def adapter(self, logged: str | None) -> str | None:
        """Return the name of an adapter in keys, in salts and on hosts."""
        return self.adapters.get(logged, logged) if logged is not None else None

    def namespace(self, tenant: str) -> str:
        """Return the tenant whose keys and salt are used: a fresh one in a control run."""
        return tenant if self.control is None else f"{tenant}~{self.control}"

    def embedding(self, tenant: str, text_digest: str) -> str:
        """Return the key of a text's vector."""
        return self._key(self._under(EMBEDDINGS), tenant, text_digest)

    def system_prompt(self, of: Asking, head_digest: str) -> str:
        """Return the key of a head's entry (L1)."""
        return self._key(SYSTEM_PROMPTS, of.tenant, head_digest, of)

    def segment(self, tenant: str, segment_digest: str) -> str:
        """Return the key of a user segment's vector (L2)."""
        return self._key(self._under(SEGMENTS), tenant, segment_digest)

    def chunk(self, tenant: str, chunk_digest: str) -> str:
        """Return the key of a chunk's entry."""
        return self._key(self._under(RETRIEVAL), tenant, chunk_digest)

    def chunks(self, tenant: str) -> str:
        """Return the name of the search index of a tenant's chunks."""
        return self._index(RETRIEVAL, tenant)

    def list_of(self, tenant: str, medoid: str) -> str:
        """Return the key of a cluster's chunk list (L3)."""
        return self._key(self._under(LISTS), tenant, medoid)

    def lists(self, tenant: str) -> str:
        """Return the name of the search index of a tenant's chunk lists."""
        return self._index(LISTS, tenant)

    def answer(self, of: Asking, response_digest: str) -> str:
        """Return the key of an answer."""
        return self._key(self._under(RESPONSES), of.tenant, response_digest, of)

    def answers(self, tenant: str) -> str:
        """Return the name of the search index of a tenant's answers."""
        return self._index(RESPONSES, tenant)

    def flight(self, of: Asking, response_digest: str) -> str:
        """Return the key of the lock of whoever computes an answer now."""
        return self._key("flight", of.tenant, response_digest, of)

    def threshold(self, tenant: str) -> str:
        """Return the key of the similarity from which a tenant's answers serve other questions."""
        return self._index("threshold", tenant)

    def shared(self, context_digest: str, adapter: str | None) -> str:
        """Return what an answer and a similar question must share.

        The context's digest holds the adapter by its name in the log, whatever its weights are.
        """
        served = self.adapter(adapter)
        if served is None or served == adapter:
            return context_digest
        return self.keys.under(context_digest, served)

    def _key(self, word: str, tenant: str, digest: str, of: Asking | None = None) -> str:
        if of is None:
            return self.keys.key(word, self.namespace(tenant), digest)
        return self.keys.key(
            word,
            self.namespace(tenant),
            digest,
            model=of.model,
            model_revision=of.model_revision,
            adapter=self.adapter(of.adapter),
        )

    def _under(self, word: str) -> str:
        """Return the layer word in the key of an entry that holds a vector.

        It ends with the encoder's fingerprint, so that another encoder can't read the entry, and
        the key then begins with the name of the search index of its tenant and encoder.
        """
        return f"{word}:{self.encoder}"

    def _index(self, word: str, tenant: str) -> str:
        return self.keys.index(word, self.namespace(tenant), self.encoder)


def answer_fields(
    key: str,
    prompt: str,
    answer: str,
    vector: bytes | None,
    context: str,
    metadata: Mapping[str, Any],
    now: float,
) -> dict[str, bytes | str | float]:
    """Return what is stored of an answer: the fields of RedisVL's SemanticCache, and two tags.

    Args:
        key: Its key.
        prompt: The question.
        answer: The answer.
        vector: The question's vector, float32, little endian; None: found by its key only.
        context: What a similar question must share, `Places.shared`.
        metadata: Who wrote it: `item_id` and `plan_id` where a plan did.
        now: Time of the write, epoch seconds.
    """
    fields: dict[str, bytes | str | float] = {
        "entry_id": ":".join(key.rsplit(":", 2)[1:]),  # what follows the name of the index
        "prompt": prompt,
        "response": answer,
        "inserted_at": now,
        "updated_at": now,
        "metadata": json.dumps(metadata),
        "context": context,
        "signature": tag(prompt),
    }
    return fields if vector is None else fields | {"prompt_vector": vector}


def owner(fields: Mapping[str, bytes]) -> str | None:
    """Return the id of the plan item that wrote an answer; None: no plan did.

    Raises:
        ValueError: Its metadata are none.
    """
    held = json.loads(fields.get("metadata", b"{}"))
    found = held.get("item_id") if isinstance(held, dict) else None
    return found if isinstance(found, str) else None
