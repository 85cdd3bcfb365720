"""Layer `responses`: whole answers on a Redis, found by identity or by a similar question.

Entries have the fields of RedisVL's SemanticCache and one search index a tenant and encoder, so
that an application's unmodified RedisVL client finds them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config, HostTarget
from warmup_lib.guard import tag
from warmup_lib.layers.answers import generate
from warmup_lib.layers.base import Context, Layer, Lookup, Match, Outcome, PlanItem, Proof, Vector
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.entries import encoder_problem, proof, raw, receipt
from warmup_lib.layers.natural import KEPT_WARM, kept_warm
from warmup_lib.layers.rows import plan_rows, refused_rows, utf8_bytes
from warmup_lib.layers.serving import planned_adapters, unserved
from warmup_lib.layers.sizes import response_bytes
from warmup_lib.places import NEIGHBOURS, RESPONSES, ROUNDING, answer_fields, owner
from warmup_lib.search import Near, Point
from warmup_lib.targets.base import Target
from warmup_lib.targets.chat import ChatResult
from warmup_lib.targets.nearby import ensure_answer_index, nearest
from warmup_lib.targets.store import Entry, RedisStore, as_store


class Responses(Layer):
    """One entry a request identity; served by identity, or to a similar question in its context."""

    name = RESPONSES
    target_kind: Literal["redis", "host"] = "redis"
    match: Literal["exact", "semantic"] = "semantic"
    needs = ("embeddings",)

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a request identity that has an answer or may have one generated."""
        why = _reasons(demand, config)
        prompts = demand.prompts.filter(pc.equal(why, ""))
        texts = pc.add(utf8_bytes(prompts["text"]), utf8_bytes(prompts["response"]))
        columns = {
            "key_digest": prompts["response_digest"],
            "encoder": demand.encoder,
            "bytes": response_bytes(texts, demand.dimension),
            "ttl_s": int(config.layers.responses.ttl.total_seconds()),
            **_heads_to_generate(prompts, demand.heads),
        }
        return plan_rows(self.name, prompts, columns)

    def refused(self, demand: Demand, config: Config) -> pa.Table:
        """Return the identities that may not be warmed, or that have no answer (`no_answer`)."""
        why = _reasons(demand, config)
        # What is neither asked nor listed here was never meant to have an answer.
        kept = pc.and_(
            pc.not_equal(why, ""),
            pc.or_(pc.greater(demand.prompts["requests"], 0), _listed(demand.prompts)),
        )
        refused = demand.prompts.filter(kept)
        return refused_rows(self.name, refused, "response_digest", why.filter(kept))

    def asks_host(self, item: PlanItem) -> bool:
        """Say whether a host has to generate the answer."""
        return item.response is None

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Write the answers, those that the log lacks after a host has generated them."""
        store = as_store(target)
        vectors = context.vectors.get([item.text_digest or "" for item in items])
        outcomes: dict[str, Outcome] = {}
        usable: list[PlanItem] = []
        for item in items:
            if problem := encoder_problem(item, vectors.get(item.text_digest or ""), context):
                outcomes[item.item_id] = Outcome(item.item_id, "failed", error=problem)
            else:
                usable.append(item)
        made = await generate([item for item in usable if not item.response], context)
        outcomes |= {ident: o for ident, o in made.items() if isinstance(o, Outcome)}
        answers = {ident: a for ident, a in made.items() if isinstance(a, ChatResult)}
        ready = [item for item in usable if item.item_id not in outcomes]
        entries = []
        for item in ready:
            answer = answers[item.item_id].text if item.item_id in answers else item.response
            vector = vectors[item.text_digest or ""]
            entries.append(_entry(item, answer or "", vector, context))
        start = time.perf_counter()
        if await store.has_search():
            for tenant in sorted({item.tenant for item in ready}):
                index = context.places.answers(tenant)
                await ensure_answer_index(store, index, context.vectors.dimension)
        written = await store.write(entries)
        ms = (time.perf_counter() - start) * 1000 / max(1, len(ready))
        for item, done in zip(ready, written, strict=True):
            cost = answers.get(item.item_id)
            own_ms, tokens = (cost.total_ms, cost.prompt_tokens) if cost else (0.0, 0)
            outcomes[item.item_id] = receipt(item, done, ms + own_ms, tokens)
        return [outcomes[item.item_id] for item in items]

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look for each entry: present, with a vector of the index's size and a lifetime."""
        keys = [context.places.answer(item, item.key_digest) for item in items]
        seen = await as_store(target).look(keys, "prompt_vector")
        size = 4 * context.vectors.dimension
        return [proof(item.item_id, one, size) for item, one in zip(items, seen, strict=True)]

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Find by identity; else a similar question with an equal context, past the guard.

        Entries of `context.planned` go first, so that what an older plan left does not hide them.
        """
        store = as_store(target)
        keys = [context.places.answer(one, one.response_digest) for one in lookups]
        entries = await store.read(keys, ("response", "metadata"))
        similar: dict[int, Near] = {}
        if await store.has_search():
            rest = [n for n, e in enumerate(entries) if e is None or not _preferred(e, context)]
            found = await _similar([lookups[n] for n in rest], store, context)
            similar = {
                n: near
                for n, near in zip(rest, found, strict=True)
                if near is not None and (entries[n] is None or _preferred(near.fields, context))
            }
        return [
            _match(lookup, similar[n].fields, "semantic", similar[n].similarity)
            if n in similar
            else _match(lookup, entry, "exact", None)
            if entry is not None
            else Match(lookup.request_id, False)
            for n, (lookup, entry) in enumerate(zip(lookups, entries, strict=True))
        ]


async def _similar(
    lookups: Sequence[Lookup], store: RedisStore, context: Context
) -> list[Near | None]:
    """Return for each request the entry that may answer it; None: none, or it has no vector."""
    vectors = context.vectors.get([one.text_digest for one in lookups if one.vector is None])
    asks: list[Point] = []
    asked: list[int] = []
    for n, one in enumerate(lookups):
        vector = one.vector if one.vector is not None else vectors.get(one.text_digest)
        if vector is not None:
            shared = context.places.shared(one.context_digest, one.adapter)
            tags = {"context": shared, "signature": tag(one.prompt)}
            asks.append(Point(context.places.answers(one.tenant), raw(vector), tags))
            asked.append(n)
    found = await nearest(store, asks, NEIGHBOURS, ("response", "metadata"))
    chosen: list[Near | None] = [None] * len(lookups)
    for n, near in zip(asked, found, strict=True):
        threshold = context.threshold(lookups[n].tenant) - ROUNDING
        fitting = [entry for entry in near if entry.similarity >= threshold]
        ours = [entry for entry in fitting if _preferred(entry.fields, context)]
        chosen[n] = next(iter(ours or fitting), None)
    return chosen


def _preferred(fields: Mapping[str, bytes], context: Context) -> bool:
    """Return whether an entry is of the plan that is looked at; of none in particular: any is."""
    return not context.planned or owner(fields) in context.planned


def _match(
    lookup: Lookup,
    entry: Mapping[str, bytes],
    kind: Literal["exact", "semantic"],
    similarity: float | None,
) -> Match:
    return Match(
        lookup.request_id,
        True,
        kind,
        similarity=similarity,
        item_id=owner(entry),
        value=entry["response"].decode(),
    )


def _entry(item: PlanItem, answer: str, vector: Vector, context: Context) -> Entry:
    key = context.places.answer(item, item.key_digest)
    shared = context.places.shared(item.context_digest or "", item.adapter)
    metadata = {"item_id": item.item_id, "plan_id": context.plan_id}
    text, vector_bytes = item.text or "", raw(vector)
    fields = answer_fields(key, text, answer, vector_bytes, shared, metadata, time.time())
    return Entry(key, fields, item.ttl_s)


def _reasons(demand: Demand, config: Config) -> Any:
    """Return why each row may not be warmed; empty: it may.

    A row without an answer is kept where it is one of the hottest that a host may still generate,
    or a list of the user's names it: those without messages before, for only these are whole in
    the plan, and whose adapter a host serves.
    """
    prompts = demand.prompts
    why = pc.fill_null(prompts["unwarmable"], "")
    if config.layers.responses.gateway_writes:
        kept = kept_warm(prompts["heat_micro"], config.layers.responses.ttl, config)
        why = pc.if_else(pc.and_(pc.equal(why, ""), kept), KEPT_WARM, why)
    mute = pc.and_(pc.equal(why, ""), pc.equal(pc.fill_null(prompts["response"], ""), ""))
    limit = config.layers.responses.generate if _has_host(config) else 0
    away = unserved(prompts["adapter"], config, planned_adapters(demand, config))
    closed = pc.or_(pc.fill_null(prompts["history"], False), away)
    able = pc.and_(mute, pc.invert(closed))
    askable = pc.indices_nonzero(pc.and_(able, pc.greater(prompts["requests"], 0)))
    order = pa.table(
        {
            "row": askable,
            "heat": prompts["heat_micro"].take(askable),
            "digest": prompts["response_digest"].take(askable),
        }
    ).sort_by([("heat", "descending"), ("digest", "ascending")])
    generated = order["row"].slice(0, limit)
    rows = pa.array(range(prompts.num_rows), pa.uint64())
    wanted = pc.is_in(rows, value_set=generated.combine_chunks())
    if _has_host(config):
        wanted = pc.or_(wanted, pc.and_(able, _listed(prompts)))
    refused = pc.and_(mute, pc.invert(wanted))
    return pc.if_else(refused, "no_answer", why)


def _listed(prompts: pa.Table) -> Any:
    """Return which prompts a list of the user's names."""
    return prompts["listed"] if "listed" in prompts.column_names else pa.scalar(False)


def _has_host(config: Config) -> bool:
    return config.targets == "embedded" or any(isinstance(t, HostTarget) for t in config.targets)


def _heads_to_generate(prompts: pa.Table, heads: pa.Table) -> dict[str, pa.Array]:
    """Return system prompt and tools for the rows whose answer is generated, null elsewhere."""
    mute = pc.equal(pc.fill_null(prompts["response"], ""), "")
    wanted = pc.if_else(mute, prompts["head_digest"], pa.scalar(None, pa.string()))
    place = pc.index_in(wanted, value_set=heads["head_digest"].combine_chunks(), skip_nulls=True)
    return {name: heads[name].take(place) for name in ("system_prompt", "tools")}
