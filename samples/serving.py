"""How requests are served: caches, latency and failures, and the canonical row each leaves behind.

The model of latency is composed from what the embedded host shows (see `parameters`): a base, the
prompt tokens that no cache holds, a queue, and the answer's tokens.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from samples import parameters as p
from samples.sessions import Turn, pick_region, revision
from samples.writing import tokens

if TYPE_CHECKING:
    import numpy as np

    from samples.texts import Tenant

_START = datetime.combine(p.FIRST_DAY, time(), UTC)
_MESSAGE_TOKENS = 5
"""Tokens the chat template adds to each message."""

_QUEUE_WINDOW_MS = 5_000
_QUEUE_MS = 35.0


def stamp(at_ms: int) -> str:
    """Return milliseconds since the log's start as ISO-8601 in UTC."""
    moment = _START + timedelta(milliseconds=at_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Gateway:
    """Serves turns in the order of time and remembers what its caches hold."""

    def __init__(self, seed: int, rng: np.random.Generator) -> None:
        self._seed = seed
        self._rng = rng
        self._served = 0
        self._prefixes: dict[tuple[str | None, str], tuple[int, int]] = {}
        self._answers: dict[tuple[str, ...], int] = {}
        self._recent: deque[int] = deque()

    def serve(self, turn: Turn) -> dict[str, Any]:
        """Return the canonical row of a request."""
        tenant, rng = turn.tenant, self._rng
        head = tenant.head(turn.area, turn.prompt.locale, turn.arm, turn.day, stamp(turn.at_ms))
        bypass = rng.random()
        region, device = pick_region(turn.prompt.locale, turn.user, rng)
        extra = {"user": turn.user, "region": region, "device": device}
        if turn.personal:
            extra["personal_looking"] = turn.personal
        row: dict[str, Any] = {
            "request_id": self._id("req"),
            "ts": stamp(turn.at_ms),
            "tenant": tenant.name,
            "model": p.MODEL,
            "model_revision": revision(tenant, turn.day),
            "adapter": tenant.adapters.get(turn.area),
            "user_segment": turn.segment,
            "session_id": turn.session,
            "locale": turn.prompt.locale,
            "intent": turn.prompt.intent,
            "ab_arm": turn.arm,
            "ab_score": self._score(turn),
            "system_prompt": head,
            "messages": _messages(head, turn) if turn.history else None,
            "prompt": turn.text,
            "tools": tenant.tools or None,
            "params": tenant.params,
            "cache_control": "no-cache" if bypass < p.NO_CACHE else None,
            "skip_cache": p.NO_CACHE <= bypass < p.NO_CACHE + p.SKIP_CACHE,
            "chunk_ids": list(turn.prompt.chunk_ids) or None,
            "warmup": False,
            "extra": extra,
        }
        return row | self._result(turn, head, cached=bypass >= p.NO_CACHE + p.SKIP_CACHE)

    def probe(self, tenant: Tenant, at_ms: int) -> dict[str, Any]:
        """Return the row of a health check."""
        return {
            "request_id": self._id("probe"),
            "ts": stamp(at_ms),
            "tenant": tenant.name,
            "model": p.MODEL,
            "model_revision": revision(tenant, at_ms // 86_400_000 + 1),
            "prompt": "ping",
            "params": {"temperature": 0, "max_tokens": 1},
            "response": "pong",
            "status": 200,
            "prompt_tokens": 1 + _MESSAGE_TOKENS,
            "completion_tokens": 1,
            "cached_tokens": 0,
            "ttft_ms": round(p.FIRST_TOKEN_MS * self._noise(), 1),
            "latency_ms": round((p.FIRST_TOKEN_MS + p.DECODE_MS) * self._noise(), 1),
            "served_from": None,
            "extra": {"user_agent": "kube-probe/1.33", "health_check": True},
        }

    def _result(self, turn: Turn, head: str, *, cached: bool) -> dict[str, Any]:
        prompt_tokens, prefix_tokens = self._lengths(turn, head)
        queue = self._queue(turn.at_ms)
        luck = self._rng.random()
        hit = cached and self._answer_cached(turn, head)
        if luck < p.RATE_LIMITED + p.FAILED:
            return _failed(429 if luck < p.RATE_LIMITED else 500, prompt_tokens, queue)
        answer_tokens = min(
            tokens(turn.answer, turn.prompt.locale), turn.tenant.params["max_tokens"]
        )
        row: dict[str, Any] = {
            "response": None if self._rng.random() < p.NO_ANSWER_LOGGED else turn.answer,
            "status": 200,
            "prompt_tokens": prompt_tokens,
            "completion_tokens": answer_tokens,
        }
        if hit:
            ms = round(4.0 * self._noise(), 1)
            return row | _timing("responses", 0, ms, ms)
        known = self._prefix_cached(turn, head, prefix_tokens)
        first = p.FIRST_TOKEN_MS + queue + p.PREFILL_MS * (prompt_tokens - known)
        first *= self._noise()
        total = first + p.DECODE_MS * answer_tokens * self._noise()
        return row | _timing(None, known, round(first, 1), round(total, 1))

    def _lengths(self, turn: Turn, head: str) -> tuple[int, int]:
        """Return the prompt's tokens, and those of the part an earlier request may share."""
        prefix = tokens(head, "en") + _MESSAGE_TOKENS
        for question, answer in turn.history:
            prefix += tokens(question, turn.prompt.locale) + tokens(answer, turn.prompt.locale)
            prefix += 2 * _MESSAGE_TOKENS
        return prefix + tokens(turn.text, turn.prompt.locale) + _MESSAGE_TOKENS, prefix

    def _prefix_cached(self, turn: Turn, head: str, prefix_tokens: int) -> int:
        """Return the prompt tokens the host still holds, and keep the prompt's own prefix."""
        adapter = turn.tenant.adapters.get(turn.area)
        shared = head[: len(turn.tenant.base)]
        keys = [(adapter, shared), (adapter, head)]
        sizes = [tokens(shared, "en"), tokens(head, "en") + _MESSAGE_TOKENS]
        if turn.history:
            keys.append((adapter, turn.session))
            sizes.append(prefix_tokens)
        known = 0
        for key in keys:
            at, size = self._prefixes.get(key, (-1, 0))
            if at >= 0 and turn.at_ms - at < p.PREFIX_LIFE_S * 1000:
                known = max(known, size)
        if turn.area not in turn.tenant.clock_areas:
            self._prefixes.update(
                {k: (turn.at_ms, s) for k, s in zip(keys[:2], sizes[:2], strict=True)}
            )
            self._prefixes[adapter, turn.session] = (turn.at_ms, prefix_tokens)
        return min(known, prefix_tokens) // p.CACHE_BLOCK * p.CACHE_BLOCK

    def _answer_cached(self, turn: Turn, head: str) -> bool:
        """Whether the tenant's exact answer cache holds the answer; it will from now on."""
        if not turn.tenant.answer_cache or turn.history:
            return False
        key = (turn.tenant.name, head, turn.text, revision(turn.tenant, turn.day))
        at = self._answers.get(key)
        if at is not None and turn.at_ms - at < p.ANSWER_LIFE_S * 1000:
            return True
        self._answers[key] = turn.at_ms
        return False

    def _queue(self, at_ms: int) -> float:
        self._recent.append(at_ms)
        while self._recent[0] < at_ms - _QUEUE_WINDOW_MS:
            self._recent.popleft()
        return _QUEUE_MS * (len(self._recent) - 1)

    def _score(self, turn: Turn) -> float | None:
        test = turn.tenant.experiment
        if turn.arm is None or test is None or self._rng.random() >= p.SCORED:
            return None
        mean = test.arms[turn.arm]["mean"]
        return round(float(self._rng.beta(8 * mean, 8 * (1 - mean))), 3)

    def _noise(self) -> float:
        return float(self._rng.lognormal(0.0, 0.15))

    def _id(self, kind: str) -> str:
        self._served += 1
        digest = hashlib.blake2b(f"{self._seed}/{self._served}".encode(), digest_size=10)
        return f"{kind}-{digest.hexdigest()}"


def _messages(head: str, turn: Turn) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": head}]
    for question, answer in turn.history:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    return [*messages, {"role": "user", "content": turn.text}]


def _failed(status: int, prompt_tokens: int, queue: float) -> dict[str, Any]:
    latency = 3.0 if status == 429 else 1_000.0 + queue
    row = {"response": None, "status": status, "prompt_tokens": prompt_tokens}
    return row | {"completion_tokens": 0} | _timing(None, 0, None, latency)


def _timing(
    layer: str | None, cached_tokens: int, first: float | None, total: float
) -> dict[str, Any]:
    return {
        "cached_tokens": cached_tokens,
        "ttft_ms": first,
        "latency_ms": total,
        "served_from": layer,
    }


def line(row: dict[str, Any]) -> bytes:
    """Return a row as one line of the log."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
