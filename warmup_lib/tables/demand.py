"""The tables of what is asked for: logs, prompts, documents, lists, vectors, clusters, heat."""

from __future__ import annotations

from warmup_lib.tables.columns import (
    BOOL,
    INT,
    MODEL,
    PROMPT_IDS,
    REAL,
    STR,
    STRS,
    TENANT,
    TIME,
    VECTOR,
    Column,
    Table,
)

REQUESTS = Table(
    "requests",
    "One row a logged request, canonical and redacted.",
    ("day",),
    (
        Column("request_id", STR, "id given by the gateway"),
        Column("ts", TIME, "when it arrived", "UTC"),
        TENANT,
        *MODEL,
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
        *PROMPT_IDS,
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
        TENANT,
        *MODEL,
        *PROMPT_IDS,
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
        Column("template_digest", STR, "identity of its template: a group's, never a key", "hex"),
    ),
    ("tenant", "response_digest"),
)

HEADS = Table(
    "heads",
    "One row a distinct system prompt + tools and day: what a KV prefix can share.",
    ("day",),
    (
        TENANT,
        *MODEL,
        Column("head_digest", STR, "identity of system prompt + tools", "hex"),
        Column("system_prompt", STR, "system prompt, redacted"),
        Column("tools", STR, "tool definitions, JSON; null when none"),
        Column("requests", INT, "demand of the day", "requests"),
        Column("last_ts", TIME, "last request of the day", "UTC"),
        Column("mean_ttft_ms", REAL, "mean logged time to first token", "ms"),
        Column("unwarmable", STR, "why it must not be warmed, in part with a detail; null: it may"),
        Column("template_digest", STR, "the same for heads that differ in moments and ids", "hex"),
    ),
    ("tenant", "head_digest"),
)

CHUNKS = Table(
    "chunks",
    "One row a chunk of a tenant's retrieval documents, as they were on a day.",
    ("day",),
    (
        TENANT,
        Column("chunk_id", STR, "id under which requests name it"),
        Column("chunk_digest", STR, "identity of the id, in keys", "hex"),
        Column("document", STR, "the document it is cut from"),
        Column("text", STR, "its text, redacted"),
        Column("text_digest", STR, "identity of that text, whose vector is used", "hex"),
    ),
    ("tenant", "chunk_id"),
)

LISTED = Table(
    "listed",
    "One row a request that a list of the user's names, as it was on a day.",
    ("day",),
    (
        Column("source", STR, "source of the plan that reads the list, such as `pinned`"),
        Column("part", STR, "language or classifier the list is of; null where it has no parts"),
        Column("position", INT, "row number in the file, from 1"),
        TENANT,
        *MODEL,
        *PROMPT_IDS,
        Column("text", STR, "user text, redacted; null: only the head is named"),
        Column("system_prompt", STR, "system prompt, redacted"),
        Column("tools", STR, "tool definitions, JSON; null when none"),
        Column("params", STR, "sampling parameters, JSON"),
        Column("history", BOOL, "has messages before the last user text"),
        Column("locale", STR, "language tag"),
        Column("intent", STR, "intent"),
        Column("response", STR, "answer to store, redacted; null: a host generates it"),
        Column("redacted", BOOL, "something was removed: never warmed"),
    ),
    ("source", "part", "position"),
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
        TENANT,
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
        TENANT,
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
        TENANT,
        Column("digest", STR, "identity", "hex"),
        Column("heat_micro", INT, "decayed requests of a day", "millionths of a request"),
        Column("seen", INT, "requests of the history read", "requests"),
        Column("last_day", STR, "last day with a request", "ISO date"),
    ),
    ("level", "tenant", "digest"),
)

HOURS = Table(
    "hours",
    "One row a tenant and hour of the day: when its requests come.",
    ("day",),
    (
        TENANT,
        Column("hour", INT, "hour of the day in the configured zone, from 0"),
        Column("share_micro", INT, "share of a day's requests", "millionths"),
    ),
    ("tenant", "hour"),
)
