"""The tables of what belongs to a plan: its items, what became of them, and whom they served."""

from __future__ import annotations

import pyarrow as pa

from warmup_lib.tables.columns import (
    BOOL,
    INT,
    MODEL,
    REAL,
    STR,
    STRS,
    TENANT,
    TIME,
    VECTOR,
    Column,
    Table,
)

PLAN = Table(
    "plan",
    "One row an item to warm, in order.",
    ("plan_id",),
    (
        Column("item_id", STR, "layer, and digest of what makes the item unique"),
        Column("rank", INT, "order in its layer, from 1"),
        Column("layer", STR, "layer"),
        TENANT,
        *MODEL,
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
        Column("expected_micro", INT, "hits to expect of it", "millionths of a hit a day"),
        Column("expected_variance", REAL, "variance of the hits to expect", "squared hits a day"),
        Column("expected_low", INT, "at least so many, with a chance of 9 in 10", "hits a day"),
        Column("expected_high", INT, "at most so many, with the same chance", "hits a day"),
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
        Column("sources", STRS, "who proposed it; null: it follows from the demand as a whole"),
    ),
    ("layer", "rank", "item_id"),
)

LEFT_OUT = Table(
    "left_out",
    "One row a candidate that was not chosen, with the reason.",
    ("plan_id",),
    (
        Column("layer", STR, "layer"),
        TENANT,
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
        TENANT,
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
        Column(
            "key_hash", STR, "stands for the entry's key, as in spans; null: it has none", "hex"
        ),
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
        TENANT,
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
        TENANT,
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

CAUSES = Table(
    "causes",
    "One row a later request that missed in a layer: why, from the closed list of causes.",
    ("plan_id", "window"),
    (
        Column("request_id", STR, "request"),
        Column("ts", TIME, "when it arrived", "UTC"),
        TENANT,
        Column("layer", STR, "layer that was asked, or that a bypass passed over"),
        Column("tier", STR, "kind of item asked for inside the layer; null: its main one"),
        Column("target", STR, "target asked; null: not known, or none was"),
        Column("cause", STR, "why it missed, from the closed list"),
        Column("evidence", STR, "what shows it: words and figures, never a text"),
        Column("source", STR, "`gateway`: seen when it was asked; `replay`: when it was verified"),
        Column("item_id", STR, "plan item that should have served it; null: none was planned"),
        Column("key_hash", STR, "first 16 digits of the SHA-256 of the key asked", "hex"),
    ),
    ("layer", "tier", "target", "ts", "request_id"),
)
