"""Log rows of the tests of the traps: a healthy gateway, and what makes it sick."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from warmup_lib.config import Config
from warmup_lib.doctor.log import Log, read_log
from warmup_lib.evidence import FIELD, Evidence, Looked
from warmup_lib.ingest.reader import Tally, read_requests
from warmup_lib.keys import Keys, Request
from warmup_lib.places import Places

SECRET = b"a secret of the tests"
KEYS = Keys(SECRET)
ENCODER = "0123456789abcdef"
PLACES = Places(KEYS, ENCODER)
BEGIN = datetime(2026, 3, 16, 9, tzinfo=UTC)
AS_OF = BEGIN + timedelta(days=1)

Change = Callable[[int, dict[str, Any]], Mapping[str, Any] | None]


def row(number: int, **given: Any) -> dict[str, Any]:
    """Return the row of a healthy request: 8 prompts of 2 tenants come again and again."""
    asked = number % 8
    held = {
        "request_id": f"r{number}",
        "ts": (BEGIN + timedelta(seconds=number)).isoformat(),
        "tenant": ("acme", "nordwind")[asked % 2],
        "model": "m",
        "system_prompt": "You answer questions of customers.",
        "prompt": f"How do I change setting {'xyzuvwab'[asked]} of my {'account ' * (1 + asked)}?",
        "status": 200,
        "prompt_tokens": 20 + 3 * asked,
        "locale": ("en", "de", "fr")[number % 3],
        "ab_arm": "AB"[number // 8 % 2],
        "extra": {"device": ("mobile", "desktop")[number // 16 % 2]},
    } | given
    return held | ({FIELD: evidence(held).to_dict()} if FIELD not in held else {})


def evidence(held: Mapping[str, Any], **looked: Any) -> Evidence:
    """Return what a sound gateway notes of a request."""
    request = Request(held["tenant"], held["model"], held["prompt"], held.get("system_prompt"))
    identity = KEYS.identity(request)
    key = PLACES.answer(request, identity.response)
    vector = PLACES.embedding(request.tenant, identity.text)
    looks = (
        Looked("responses", "absent", key),
        Looked("embeddings", "hit", vector),
        Looked("responses", "below_threshold", PLACES.answers(request.tenant), key, 0.81, 0.92),
    )
    first = replace(looks[0], **looked)
    return Evidence(
        (first, *looks[1:]), secret_id=KEYS.secret_id, encoder=ENCODER, host="a", host_ready=True
    )


def rows(count: int, change: Change | None = None) -> list[dict[str, Any]]:
    """Return healthy rows, each replaced by what `change` returns of it; None: it stays."""
    sound = [row(n) for n in range(count)]
    return [change(n, one) or one for n, one in enumerate(sound)] if change else sound


def keyed(text: str) -> str:
    """Return a key as a gateway of one's own would make it."""
    return hashlib.sha256(text.encode()).hexdigest()


def log_of(folder: Path, held: Iterable[Mapping[str, Any]]) -> Log:
    """Return rows as the doctor reads them from a file."""
    file = folder / "requests.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in held))
    tally = Tally()
    read = read_requests([file], "jsonl", Config(), KEYS, AS_OF, tally)
    return read_log(read, tally.nameless)
