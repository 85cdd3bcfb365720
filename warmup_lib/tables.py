"""The lake's tables: every column's name, type, unit and meaning, declared once.

A change of meaning or type raises `SCHEMA_VERSION`; readers refuse a partition of another version.
Partition columns live in the folder names (`day=2026-03-14`) and not in the files.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = 2

STR = pa.string()
INT = pa.int64()
REAL = pa.float64()
BOOL = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
STRS = pa.list_(pa.string())
VECTOR = pa.list_(pa.float32())

MICRO = 1_000_000
"""Heat is stored in millionths of a request, so that sums split over workers stay exact."""


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means, and the unit of its values."""

    name: str
    type: pa.DataType
    description: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """One table: its columns, its partition keys, and the order of its rows."""

    name: str
    description: str
    partition: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the part files."""
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    def empty(self) -> pa.Table:
        """Return a table of no rows."""
        return self.schema.empty_table()


_TENANT = Column("tenant", STR, "who the request belongs to")
_MODEL = (
    Column("model", STR, "model name as requested"),
    Column("model_revision", STR, "model revision, null when the log has none"),
    Column("adapter", STR, "LoRA adapter, null for the base model"),
)
_PROMPT_IDS = (
    Column("text_digest", STR, "identity of the user text for embeddings (case folded)", "hex"),
    Column("context_digest", STR, "identity of all but the last user text", "hex"),
    Column("response_digest", STR, "identity of the whole request, as an answer's key", "hex"),
    Column("head_digest", STR, "identity of system prompt + tools, as a KV prefix", "hex"),
)

REQUESTS = Table(
    "requests",
    "One row a logged request, canonical and redacted.",
    ("day",),
    (
        Column("request_id", STR, "id given by the gateway"),
        Column("ts", TIME, "when it arrived", "UTC"),
        _TENANT,
        *_MODEL,
        Column("prompt", STR, "last user text, redacted"),
        Column("system_prompt", STR, "system prompt, redacted"),
        Column("history", STR, "messages between the two, redacted JSON list; null when none"),
        Column("tools", STR, "tool definitions, JSON; null when none"),
        Column("user_segment", STR, "segment of the user"),
        Column("session_id", STR, "conversation"),
        Column("locale", STR, "language tag"),
        Column("intent", STR, "intent given by the application's classifier"),
        Column("ab_arm", STR, "arm of the A/B test"),
        Column("ab_score", REAL, "score of the answer in the A/B test"),
        Column("params", STR, "sampling parameters, canonical JSON"),
        Column("cache_control", STR, "cache-control header"),
        Column("response", STR, "answer, redacted"),
        Column("status", INT, "HTTP status; null when the log has none"),
        Column("prompt_tokens", INT, "prompt length, cached tokens included", "tokens"),
        Column("completion_tokens", INT, "answer length", "tokens"),
        Column("cached_tokens", INT, "prompt tokens served from the KV cache", "tokens"),
        Column("ttft_ms", REAL, "time to first token", "ms"),
        Column("latency_ms", REAL, "time to last token", "ms"),
        Column("served_from", STR, "cache layer that answered; null: the model"),
        Column("chunk_ids", STRS, "retrieved chunks, best first"),
        Column("warmup", BOOL, "our own warm-up traffic: never demand"),
        Column("health", BOOL, "a health check: never demand"),
        Column("cache_hit", BOOL, "served by a cache: demand, but not model load"),
        Column("bypass", BOOL, "went round the caches (no-cache, skip_cache)"),
        Column("redacted", BOOL, "something was removed or cut: demand, but never warmed"),
        *_PROMPT_IDS,
        Column("extra", STR, "fields nobody knows, kept; JSON, redacted"),
        Column("dialect", STR, "log format it was read from"),
        Column("source", STR, "digest of the file it was read from", "hex"),
        Column("position", INT, "row number in that file, from 1"),
    ),
    ("ts", "tenant", "request_id", "source", "position"),
)

QUARANTINE = Table(
    "quarantine",
    "One row a log row that could not be used. The row itself stays in its file.",
    ("source",),
    (
        Column("position", INT, "row number in the file, from 1"),
        Column("byte_offset", INT, "where the row begins in the decompressed file", "bytes"),
        Column("bytes", INT, "length of the row", "bytes"),
        Column("reason", STR, "why, from a closed list"),
        Column("field", STR, "the field at fault; null when the whole row is"),
        Column("dialect", STR, "log format it was read as"),
        Column("ingested_at", TIME, "when it was found", "UTC"),
    ),
    ("position",),
)

PROMPTS = Table(
    "prompts",
    "One row a distinct canonical request identity and day, with its counts.",
    ("day",),
    (
        _TENANT,
        *_MODEL,
        *_PROMPT_IDS,
        Column("text", STR, "user text as most often written, redacted"),
        Column("params", STR, "sampling parameters, JSON"),
        Column("history", BOOL, "has messages before the last user text"),
        Column("locale", STR, "most frequent language tag"),
        Column("intent", STR, "most frequent intent"),
        Column("user_segment", STR, "most frequent segment"),
        Column("requests", INT, "demand: warm-up and health checks excluded", "requests"),
        Column("cache_hits", INT, "of these, served by a cache", "requests"),
        Column("bypassed", INT, "of these, went round the caches", "requests"),
        Column("failed", INT, "of these, with a status of 400 or above", "requests"),
        Column("prompt_tokens", INT, "longest prompt; estimated where the log has none", "tokens"),
        Column("first_ts", TIME, "first request of the day", "UTC"),
        Column("last_ts", TIME, "last request of the day", "UTC"),
        Column("response", STR, "latest usable answer of the day; null when none"),
        Column("chunk_ids", STRS, "chunks retrieved for it, latest"),
        Column("unwarmable", STR, "why it must not be warmed; null: it may"),
        Column("near_of", STR, "text_digest of the near duplicate that stands for it"),
    ),
    ("tenant", "response_digest"),
)

HEADS = Table(
    "heads",
    "One row a distinct system prompt + tools and day: what a KV prefix can share.",
    ("day",),
    (
        _TENANT,
        *_MODEL,
        Column("head_digest", STR, "identity of system prompt + tools", "hex"),
        Column("system_prompt", STR, "system prompt, redacted"),
        Column("tools", STR, "tool definitions, JSON; null when none"),
        Column("requests", INT, "demand of the day", "requests"),
        Column("last_ts", TIME, "last request of the day", "UTC"),
        Column("mean_ttft_ms", REAL, "mean logged time to first token", "ms"),
        Column("unwarmable", STR, "why it must not be warmed, in part with a detail; null: it may"),
    ),
    ("tenant", "head_digest"),
)

CHUNKS = Table(
    "chunks",
    "One row a chunk of a tenant's retrieval documents, as they were on a day.",
    ("day",),
    (
        _TENANT,
        Column("chunk_id", STR, "id under which requests name it"),
        Column("chunk_digest", STR, "identity of the id, in keys", "hex"),
        Column("document", STR, "the document it is cut from"),
        Column("text", STR, "its text, redacted"),
        Column("text_digest", STR, "identity of that text, whose vector is used", "hex"),
    ),
    ("tenant", "chunk_id"),
)

VECTORS = Table(
    "vectors",
    "One row a distinct text, under the encoder that made it and the day it was first seen.",
    ("encoder", "day"),
    (
        Column("text_digest", STR, "identity of the text", "hex"),
        Column("vector", VECTOR, "embedding, length 1"),
    ),
    ("text_digest",),
)

CLUSTERS = Table(
    "clusters",
    "One row a cluster of a tenant's prompts, for people to read.",
    ("day",),
    (
        Column("cluster_id", STR, "tenant and number, largest heat first"),
        _TENANT,
        Column("label", STR, "its most typical prompt, redacted"),
        Column("keywords", STRS, "words that set it apart, best first"),
        Column("medoid", STR, "text_digest of the most typical prompt"),
        Column("prompts", INT, "distinct prompts", "prompts"),
        Column("requests", INT, "requests of the history read", "requests"),
        Column("heat_micro", INT, "expected requests", "millionths of a request"),
        Column("encoder", STR, "fingerprint of the encoder"),
    ),
    ("cluster_id",),
)

MEMBERS = Table(
    "members",
    "One row a prompt text and the cluster it belongs to.",
    ("day",),
    (
        Column("cluster_id", STR, "cluster"),
        _TENANT,
        Column("text_digest", STR, "identity of the text", "hex"),
        Column("similarity", REAL, "cosine with the cluster's centre"),
        Column("heat_micro", INT, "expected requests", "millionths of a request"),
    ),
    ("cluster_id", "text_digest"),
)

HEAT = Table(
    "heat",
    "One row a prompt or head with its expected requests in the coming horizon.",
    ("day",),
    (
        Column("level", STR, "`prompt` (digest is response_digest) or `head` (head_digest)"),
        _TENANT,
        Column("digest", STR, "identity", "hex"),
        Column("heat_micro", INT, "expected requests a day", "millionths of a request"),
        Column("seen", INT, "requests of the history read", "requests"),
        Column("last_day", STR, "last day with a request", "ISO date"),
    ),
    ("level", "tenant", "digest"),
)

PLAN = Table(
    "plan",
    "One row an item to warm, in order.",
    ("plan_id",),
    (
        Column("item_id", STR, "layer, and digest of what makes the item unique"),
        Column("rank", INT, "order in its layer, from 1"),
        Column("layer", STR, "layer"),
        _TENANT,
        *_MODEL,
        Column("key_digest", STR, "digest in the key on the target", "hex"),
        Column("context_digest", STR, "identity of all but the last user text", "hex"),
        Column("text_digest", STR, "identity of the text whose vector is used", "hex"),
        Column("text", STR, "user text, redacted"),
        Column("response", STR, "answer to store; null: a host generates it"),
        Column("system_prompt", STR, "system prompt of a head or of an answer to generate"),
        Column("tools", STR, "tool definitions of a head, JSON"),
        Column("params", STR, "sampling parameters of an answer to generate, JSON"),
        Column("encoder", STR, "fingerprint of the encoder"),
        Column("heat_micro", INT, "own expected requests", "millionths of a request a day"),
        Column("expected_micro", INT, "expected hits it adds", "millionths of a hit a day"),
        Column("bytes", INT, "estimated size on the target", "bytes"),
        Column("ttl_s", INT, "lifetime on the target", "s"),
        Column("reason", STR, "why it was chosen, one sentence"),
        Column(
            "tier", STR, "kind of item inside its layer, such as `L1`; null: the layer's main one"
        ),
        Column("chunk_ids", STRS, "chunks to store, best first; null but in `retrieval`"),
        Column("document", STR, "document that a chunk is cut from; null elsewhere"),
        Column("source_digest", STR, "digest of the content it was made from", "hex"),
        Column("vector", VECTOR, "vector to store where it is no single text's; null elsewhere"),
    ),
    ("layer", "rank", "item_id"),
)

LEFT_OUT = Table(
    "left_out",
    "One row a candidate that was not chosen, with the reason.",
    ("plan_id",),
    (
        Column("layer", STR, "layer"),
        _TENANT,
        Column("digest", STR, "identity", "hex"),
        Column("heat_micro", INT, "own expected requests", "millionths of a request a day"),
        Column("reason", STR, "why not: a word from a closed list, some with `: ` and a detail"),
    ),
    ("layer", "tenant", "digest"),
)

RECEIPTS = Table(
    "receipts",
    "One row a plan item and target: what happened.",
    ("plan_id",),
    (
        Column("item_id", STR, "plan item"),
        Column("layer", STR, "layer"),
        _TENANT,
        Column("target", STR, "target's name"),
        Column("target_epoch", STR, "the target process: another one has lost what it held"),
        Column("status", STR, "`warmed`, `already` (was resident), `failed` or `skipped`"),
        Column("attempts", INT, "tries"),
        Column("bytes", INT, "written", "bytes"),
        Column("tokens", INT, "prompt tokens processed", "tokens"),
        Column("ms", REAL, "share of the batch's time", "ms"),
        Column("ttl_s", INT, "lifetime read back after the write; null: none", "s"),
        Column("error", STR, "why it failed or was skipped"),
        Column("issued", INT, "warm-up steps sent, to each rank of a host"),
        Column("effective", pa.list_(INT), "of these, how many worked, by rank"),
        Column("at", TIME, "when it was done", "UTC"),
    ),
    ("layer", "item_id", "target", "at"),
)

RESIDENCY = Table(
    "residency",
    "One row a plan item and target: what looking at the target showed.",
    ("plan_id",),
    (
        Column("item_id", STR, "plan item"),
        Column("layer", STR, "layer"),
        _TENANT,
        Column("target", STR, "target's name"),
        Column("resident", BOOL, "proven present"),
        Column("evidence", STR, "what was seen, such as `ttl=171990s` or `cached=1184/1184`"),
        Column("applied_at", TIME, "the receipt this probe judges; null: there is none", "UTC"),
        Column("probed_at", TIME, "when it was looked at", "UTC"),
    ),
    ("layer", "item_id", "target"),
)

HITS = Table(
    "hits",
    "One row a later request and layer: whether the warmed entries serve it.",
    ("plan_id", "window"),
    (
        Column("request_id", STR, "request"),
        Column("ts", TIME, "when it arrived", "UTC"),
        _TENANT,
        Column("layer", STR, "layer"),
        Column("tier", STR, "kind of item looked for inside the layer; null: its main one"),
        Column("target", STR, "target asked"),
        Column("hit", BOOL, "served by a planned item"),
        Column("match", STR, "`exact`, `semantic` or `prefix`; null: a miss"),
        Column("similarity", REAL, "cosine of a semantic match"),
        Column("item_id", STR, "plan item that served it"),
        Column("text_digest", STR, "identity of its text", "hex"),
        Column("prompt_tokens", INT, "prompt length seen by the host", "tokens"),
        Column("cached_tokens", INT, "prompt tokens the host took from its cache", "tokens"),
        Column("warm_ttft_ms", REAL, "first token, warm", "ms"),
        Column("cold_ttft_ms", REAL, "first token of the same request under a fresh salt", "ms"),
    ),
    ("layer", "tier", "target", "ts", "request_id"),
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        REQUESTS,
        QUARANTINE,
        PROMPTS,
        HEADS,
        CHUNKS,
        VECTORS,
        CLUSTERS,
        MEMBERS,
        HEAT,
        PLAN,
        LEFT_OUT,
        RECEIPTS,
        RESIDENCY,
        HITS,
    )
}


def reason_word(reason: str) -> str:
    """Return the word from the closed list, without the detail that some have after it."""
    return reason.partition(":")[0]
