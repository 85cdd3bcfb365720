"""Requests, items and misses by hand, under real keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from warmup_lib.evidence import FIELD, Evidence, Looked
from warmup_lib.explain.miss import Asked, Miss
from warmup_lib.explain.standing import Live, Standing
from warmup_lib.keys import Keys, Request
from warmup_lib.layers.base import PlanItem, item_id
from warmup_lib.places import Places

NOON = datetime(2026, 3, 16, 12, tzinfo=UTC)
KEYS = Keys(b"a secret of the tests only")
ENCODER = "0123456789abcdef"
SERVED = {"cards-lora": "cards-lora-a1b2c3d4e5f6"}
PLACES = Places(KEYS, ENCODER, SERVED)
EPOCH = "run-1"

QUESTION = Request(
    "acme",
    "m",
    "How do I freeze my card, please?",
    system_prompt="You help customers of Acme.",
    model_revision="r1",
)


def asked(request: Request = QUESTION, **fields: Any) -> Asked:
    """Return a request as its row has it."""
    identity = KEYS.identity(request)
    history = json.dumps(list(request.history)) if request.history else None
    row: dict[str, Any] = dict.fromkeys(Asked._fields) | {
        "request_id": "r1",
        "ts": NOON,
        "tenant": request.tenant,
        "model": request.model,
        "model_revision": request.model_revision,
        "adapter": request.adapter,
        "prompt": request.prompt,
        "system_prompt": request.system_prompt,
        "history": history,
        "redacted": False,
        "bypass": False,
        "text_digest": identity.text,
        "context_digest": identity.context,
        "response_digest": identity.response,
        "head_digest": identity.head,
        "source": "log",
    }
    return Asked(**row | fields)


def looked(key: str, layer: str = "responses", **fields: Any) -> Looked:
    """Return a look that found nothing."""
    return Looked(layer, fields.pop("found", "absent"), key, **fields)


def miss(one: Asked | None = None, *looks: Looked, layer: str = "responses", **fields: Any) -> Miss:
    """Return a miss; with looks, as its gateway saw it."""
    evidence = Evidence(looks, redis_epoch=EPOCH) if looks else None
    held: dict[str, Any] = {"tier": None, "target": "redis", "evidence": evidence, "looks": looks}
    return Miss(one or asked(), layer, **held | fields)


def item(request: Request = QUESTION, layer: str = "responses", **fields: Any) -> PlanItem:
    """Return the item that serves a request."""
    identity = KEYS.identity(request)
    digest = {"responses": identity.response, "embeddings": identity.text}.get(layer, identity.head)
    made = PlanItem(
        item_id=item_id(layer, request.tenant, digest),
        rank=1,
        layer=layer,
        tenant=request.tenant,
        model=request.model,
        model_revision=request.model_revision,
        adapter=request.adapter,
        key_digest=digest,
        context_digest=identity.context,
        text_digest=identity.text,
        text=request.prompt,
        response="an answer",
        system_prompt=request.system_prompt,
        tools=None,
        params=None,
        encoder=ENCODER,
        heat_micro=1,
        expected_micro=1,
        bytes=1,
        ttl_s=3600,
        reason="",
    )
    return replace(made, **fields)


def receipt(status: str = "warmed", minutes: int = -30, **fields: Any) -> dict[str, Any]:
    """Return a receipt of so many minutes after noon, of an hour's lifetime."""
    held = {"status": status, "at": NOON + timedelta(minutes=minutes), "ttl_s": 3600}
    return held | {"target_epoch": EPOCH, "error": None, "key_hash": None} | fields


def standing(
    items: Iterable[PlanItem] = (),
    receipts: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    residency: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    kinds: Mapping[str, str] | None = None,
    **live: Live,
) -> Standing:
    """Return what is known of items; by default there is one Redis."""
    by_place: dict[tuple[str, str | None, str, str], list[PlanItem]] = {}
    by_text: dict[str, list[PlanItem]] = {}
    for one in items:
        place = (one.layer, one.tier, one.tenant, one.key_digest)
        by_place.setdefault(place, []).append(one)
        if one.layer == "responses":
            by_text.setdefault(one.text_digest or "", []).append(one)
    kinds = kinds or {"redis": "redis"}
    later = NOON + timedelta(minutes=20)
    return Standing(by_place, by_text, receipts or {}, residency or {}, live, kinds, later)


def row_of(one: Asked, evidence: Evidence | None = None, **extra: Any) -> dict[str, Any]:
    """Return a request as a row of the lake, with its gateway's evidence in it."""
    held = extra | ({FIELD: evidence.to_dict()} if evidence is not None else {})
    return one._asdict() | {"extra": json.dumps(held) if held else None}
