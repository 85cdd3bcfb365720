"""What a model host's Prometheus page says about its process and its cache."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_BLOCK = 16
"""Cache block of vLLM where the host does not say; SGLang's pages are smaller and divide it."""

_START = re.compile(r"^process_start_time_seconds(?:\{[^}]*\})?\s+(\S+)", re.MULTILINE)
_CREATED = re.compile(r"^\S+_created(?:\{[^}]*\})?\s+([\d.eE+]+)", re.MULTILINE)
_CACHE_CONFIG = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class CacheSize:
    """Size of the KV cache: tokens in a block, and tokens in all (None: not said)."""

    block: int
    tokens: int | None


def epoch(page: str) -> str:
    """Return when the process started, by its own word or by its oldest counter.

    `unknown` where the page has neither (several API processes): a restart can't be seen then.
    """
    if start := _START.search(page):
        return start[1]
    created = [float(value) for value in _CREATED.findall(page)]
    return f"{min(created):.3f}" if created else "unknown"


def cache_size(page: str) -> CacheSize:
    """Return the size of the KV cache."""
    found = _CACHE_CONFIG.search(page)
    labels = dict(_LABEL.findall(found[1])) if found else {}
    number = {name: int(value) for name, value in labels.items() if value.isdigit()}
    block = number.get("block_size", DEFAULT_BLOCK)
    tokens = number.get("kv_cache_size_tokens")
    if tokens is None and "num_gpu_blocks" in number:
        tokens = number["num_gpu_blocks"] * block
    return CacheSize(block, tokens)
