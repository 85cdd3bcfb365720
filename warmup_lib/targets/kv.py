"""What this process knows of a model host's KV cache: rendered heads, filled blocks, sizes."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warmup_lib.targets import metrics
from warmup_lib.targets.chat import Head

if TYPE_CHECKING:
    from warmup_lib.targets.host import ModelHost

_DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "fp8": 1}


@dataclass
class KvCache:
    """One host's cache, as far as this process asked or filled it.

    Attributes:
        heads: The tokens that all requests with a head begin with.
        filled: Digests of the blocks that this process had computed. The host may have evicted
            them since.
        turns: Held by what extends a stem, by the stem's first block: heads that begin alike are
            warmed one after another, so that the stem is computed once.
        token_bytes: Bytes a token takes, by served model; 0: not known.
    """

    heads: dict[Head, array[int]] = field(default_factory=dict)
    filled: set[bytes] = field(default_factory=set)
    turns: defaultdict[bytes, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    token_bytes: dict[str, int] = field(default_factory=dict)


async def token_bytes(host: ModelHost, model: str) -> int:
    """Return how many bytes of cache a token takes; 0 where the model's folder is not at hand.

    Args:
        host: The host.
        model: Served name of a model or an adapter, which takes what its base takes.

    Raises:
        HostUnavailable: No answer.
    """
    if model not in host.kv.token_bytes:
        response = await host.send("GET", "/v1/models")
        host.check(response)
        with host.shape():
            listed = {str(one["id"]): one for one in response.json()["data"]}
        entry = listed.get(model, {})
        base = listed.get(str(entry.get("parent")), entry)
        config = _model_config(base.get("root"))
        stored = metrics.cache_dtype(await host.metrics())
        host.kv.token_bytes[model] = bytes_of_config(config, stored)
    return host.kv.token_bytes[model]


def bytes_of_config(config: Mapping[str, Any], stored: str | None = None) -> int:
    """Return keys and values of one token over all layers; 0 for other kinds of models.

    Args:
        config: The model's `config.json`.
        stored: Type in which the host keeps them; None: the model's own.
    """
    dtype = stored or str(config.get("dtype") or config.get("torch_dtype"))
    size = _DTYPE_BYTES.get(dtype.split("_")[0], 0)
    heads = config.get("num_attention_heads")
    layers, hidden = config.get("num_hidden_layers"), config.get("hidden_size")
    if not (heads and layers and hidden and _plain(config)):
        return 0
    width = config.get("head_dim") or int(hidden) // int(heads)
    return 2 * int(layers) * int(config.get("num_key_value_heads") or heads) * int(width) * size


def _plain(config: Mapping[str, Any]) -> bool:
    """Say whether every layer keeps two vectors a head for every token."""
    windowed = config.get("sliding_window") and config.get("use_sliding_window", True)
    mixed = set(config.get("layer_types") or ()) - {"full_attention"}
    compressed = config.get("kv_lora_rank") or config.get("layers_block_type")
    return not (windowed or mixed or compressed)


def _model_config(root: object) -> Mapping[str, Any]:
    """Return the `config.json` of a model folder on this machine; empty: there is none."""
    if not isinstance(root, str) or not root:
        return {}
    try:
        config = json.loads((Path(root) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
