"""Model folders for the tests: files written by hand, of any fault, and a Llama of any sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I32": 4, "I8": 1, "F8_E4M3": 1}
TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}

Spec = tuple[str, tuple[int, ...]]
"""Type and shape of a tensor."""


def header_of(tensors: Mapping[str, Spec]) -> dict[str, Any]:
    """Return a sound header of tensors that lie one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = prod(shape) * SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    return header


def write_file(path: Path, header: Mapping[str, Any], data: int | None = None) -> None:
    """Write a safetensors file whose data is a hole; `data` is its length where it is wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(header).encode()
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
    with path.open("wb") as out:
        out.write(len(raw).to_bytes(8, "little") + raw)
        out.truncate(8 + len(raw) + (max(ends, default=0) if data is None else data))


def write_tensors(path: Path, tensors: Mapping[str, Spec]) -> None:
    write_file(path, header_of(tensors))


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


def llama(config: Mapping[str, Any] = TINY, dtype: str = "BF16") -> dict[str, Spec]:
    """Return the tensors of a Llama, written down here apart from the product's own table."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        shapes |= {
            f"model.layers.{layer}.{name}.weight": shape
            for name, shape in {
                "self_attn.q_proj": (queries, hidden),
                "self_attn.k_proj": (keys, hidden),
                "self_attn.v_proj": (keys, hidden),
                "self_attn.o_proj": (hidden, queries),
                "mlp.gate_proj": (inner, hidden),
                "mlp.up_proj": (inner, hidden),
                "mlp.down_proj": (hidden, inner),
                "input_layernorm": (hidden,),
                "post_attention_layernorm": (hidden,),
            }.items()
        }
    return {name: (dtype, shape) for name, shape in shapes.items()}


def rank_of_two(config: Mapping[str, Any] = TINY) -> dict[str, Spec]:
    """Return what vLLM writes for one of two ranks of the tiny Llama: fused projections."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = hidden // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"] // 2, hidden),
        "lm_head.weight": (config["vocab_size"] // 2, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        shapes |= {
            f"model.layers.{layer}.self_attn.qkv_proj.weight": ((queries + 2 * keys) // 2, hidden),
            f"model.layers.{layer}.self_attn.o_proj.weight": (hidden, queries // 2),
            f"model.layers.{layer}.mlp.gate_up_proj.weight": (inner, hidden),
            f"model.layers.{layer}.mlp.down_proj.weight": (hidden, inner // 2),
            f"model.layers.{layer}.input_layernorm.weight": (hidden,),
            f"model.layers.{layer}.post_attention_layernorm.weight": (hidden,),
        }
    return {name: ("BF16", shape) for name, shape in shapes.items()}


def healthy(folder: Path, config: Mapping[str, Any] = TINY) -> dict[str, Spec]:
    """Write a sound folder of one file; return its tensors, to be spoilt and written again."""
    write_config(folder, config)
    tensors = llama(config)
    write_tensors(folder / "model.safetensors", tensors)
    return tensors
