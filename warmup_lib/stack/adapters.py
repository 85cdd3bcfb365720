"""Composes the LoRA adapters that the sample log asks for, in the files that PEFT writes.

They are drawn, not trained: each shifts what the model says by a little and knows nothing. The
same name and model give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

NAMES = (
    "acme-bank-cards-lora",
    "acme-bank-loans-lora",
    "codeforge-review-lora",
    "nordwind-flights-lora",
    "nordwind-stays-lora",
)
"""The adapters in the sample log."""

RANK = 8
MODULES = ("q_proj", "v_proj")
"""What the adapters adapt, which is all that the host lets them: see `servers`."""

_ALPHA = 16
_SPREAD = 0.06
"""Standard deviation of B's entries: first tokens shift by a few tenths of a nat."""

_README = """# Composed adapters

LoRA adapters for the embedded model host, rank {rank}, in PEFT's format: one for each adapter
that the sample log names. Their weights are **drawn from a fixed seed, not trained**: they change
what the model says, so that a host that serves one can be told from a host that serves the base
model, and are good for nothing else.
"""


def compose_adapters(model: Path, output: Path) -> None:
    """Write a folder for each adapter, and a README that says what they are.

    Args:
        model: Folder of the base model; its config.json gives the shapes.
        output: An empty folder.
    """
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    for name in NAMES:
        compose_adapter(name, config, output / name)
    (output / "README.md").write_text(_README.format(rank=RANK), encoding="utf-8")


def compose_adapter(name: str, config: dict[str, Any], folder: Path) -> None:
    """Write one adapter's configuration and weights.

    Args:
        name: Decides the weights.
        config: The base model's configuration.
        folder: Made where it is not there.
    """
    from safetensors.numpy import save

    hidden = int(config["hidden_size"])
    rows_of = (int(config["num_attention_heads"]), int(config["num_key_value_heads"]))
    width = {m: heads * int(config["head_dim"]) for m, heads in zip(MODULES, rows_of, strict=True)}
    draw = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    weights = {}
    for layer in range(int(config["num_hidden_layers"])):
        for module, rows in width.items():
            at = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            down = draw.standard_normal((RANK, hidden)) / np.sqrt(hidden)
            up = draw.standard_normal((rows, RANK)) * _SPREAD
            weights[f"{at}.lora_A.weight"] = down.astype(np.float16)
            weights[f"{at}.lora_B.weight"] = up.astype(np.float16)
    settings = {
        "base_model_name_or_path": str(config.get("_model_name_or_path", "")),
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "lora_alpha": _ALPHA,
        "lora_dropout": 0.0,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": RANK,
        "target_modules": sorted(width),
        "task_type": "CAUSAL_LM",
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    (folder / "adapter_model.safetensors").write_bytes(save(weights))
