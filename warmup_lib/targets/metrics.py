"""What a model host's Prometheus page says about its process, its cache and its load."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_BLOCK = 16
"""Cache block of vLLM where the host does not say; SGLang's pages are smaller and divide it."""

_MOST_BLOCK = 65_536
"""Larger blocks are not believed: a prompt of this many words finds out what a host can do."""

_MOST = 1e14
"""Sums of such numbers, and one of them times a block, still fit 64 bits."""

_START = re.compile(r"^process_start_time_seconds(?:\{[^}]*\})?\s+(\S+)", re.MULTILINE)
_CREATED = re.compile(r"^\S+_created(?:\{[^}]*\})?\s+(\S+)", re.MULTILINE)
_CACHE_CONFIG = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_LOAD = re.compile(
    r"^vllm:(num_requests_waiting|time_to_first_token_seconds_count|time_to_first_token_seconds_sum)"
    r"(?:\{[^}]*\})?\s+(\S+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class CacheSize:
    """Size of the KV cache: tokens in a block, and tokens in all (None: not said)."""

    block: int
    tokens: int | None


@dataclass(frozen=True)
class Load:
    """What all requests together ask of a host, its warm-up requests among them.

    Attributes:
        waiting: Requests in its queue now.
        first_tokens: First tokens since it started.
        first_token_s: Seconds that all of them took.
    """

    waiting: int
    first_tokens: int
    first_token_s: float


def load(page: str) -> Load | None:
    """Return the load, over all engines of the host; None: the page does not say."""
    sums: dict[str, float] = {}
    for name, value in _LOAD.findall(page):
        if (said := number(value)) is not None:
            sums[name] = sums.get(name, 0.0) + said
    if "num_requests_waiting" not in sums:
        return None
    return Load(
        waiting=int(sums["num_requests_waiting"]),
        first_tokens=int(sums.get("time_to_first_token_seconds_count", 0)),
        first_token_s=sums.get("time_to_first_token_seconds_sum", 0.0),
    )


def epoch(page: str) -> str:
    """Return when the process started, by its own word or by its oldest counter.

    `unknown` where the page has neither (several API processes): a restart can't be seen then.
    """
    for start in _START.findall(page):
        if number(start) is not None:
            return str(start)
    created = [at for value in _CREATED.findall(page) if (at := number(value)) is not None]
    return f"{min(created):.3f}" if created else "unknown"


def cache_size(page: str) -> CacheSize:
    """Return the size of the KV cache."""
    labels = _cache_config(page)
    block = whole(labels.get("block_size"))
    if block is None or not 1 <= block <= _MOST_BLOCK:
        block = DEFAULT_BLOCK
    tokens, blocks = whole(labels.get("kv_cache_size_tokens")), whole(labels.get("num_gpu_blocks"))
    if tokens is None and blocks is not None:
        tokens = blocks * block
    return CacheSize(block, tokens)


def cache_dtype(page: str) -> str | None:
    """Return the type in which keys and values are kept; None: the model's own, or not said."""
    kind = _cache_config(page).get("cache_dtype")
    return None if kind in (None, "auto") else kind


def number(text: str) -> float | None:
    """Return a number of a page; None: it is none, negative, or beyond all that is counted."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _MOST else None  # false for NaN too


def whole(text: str | None) -> int | None:
    """Return a whole number from a label; None: it is none."""
    value = number(text) if text is not None and text.isdecimal() else None
    return None if value is None else int(value)


def _cache_config(page: str) -> dict[str, str]:
    found = _CACHE_CONFIG.search(page)
    return dict(_LABEL.findall(found[1])) if found else {}
