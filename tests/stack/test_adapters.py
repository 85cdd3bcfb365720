"""Composed adapters: PEFT's files, the base model's shapes, and the same bytes every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from samples.texts import TENANTS, tenant
from warmup_lib.stack import adapter_folders
from warmup_lib.stack.adapters import NAMES, RANK, compose_adapter, compose_adapters
from warmup_lib.stack.artifacts import adapters_in
from warmup_lib.stack.state import StackState, write_state

MODEL: dict[str, Any] = {
    "_model_name_or_path": "Small",
    "hidden_size": 12,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "num_hidden_layers": 2,
}


@pytest.fixture
def composed(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(MODEL))
    compose_adapters(tmp_path / "model", tmp_path / "adapters")
    return tmp_path / "adapters"


def test_there_is_one_for_each_adapter_in_the_sample_log(composed: Path) -> None:
    asked = {adapter for name in TENANTS for adapter in tenant(name).adapters.values()}
    assert set(NAMES) == asked
    assert set(adapters_in(composed.parent)) == asked
    assert "not trained" in (composed / "README.md").read_text()


def test_tensors_have_pefts_names_and_the_models_shapes(composed: Path) -> None:
    weights = load_file(composed / NAMES[0] / "adapter_model.safetensors")
    attention = "base_model.model.model.layers.{}.self_attn."
    expected = {}
    for layer in range(2):
        at = attention.format(layer)
        expected |= {f"{at}{m}.lora_A.weight": (RANK, 12) for m in ("q_proj", "v_proj")}
        expected |= {f"{at}q_proj.lora_B.weight": (12, RANK)}
        expected |= {f"{at}v_proj.lora_B.weight": (4, RANK)}
    assert {name: tensor.shape for name, tensor in weights.items()} == expected
    assert all(np.any(tensor) for tensor in weights.values())
    settings = json.loads((composed / NAMES[0] / "adapter_config.json").read_text())
    assert (settings["peft_type"], settings["r"]) == ("LORA", RANK)
    assert settings["target_modules"] == ["q_proj", "v_proj"]


def test_a_name_gives_the_same_bytes_again_and_another_name_gives_others(composed: Path) -> None:
    compose_adapter(NAMES[0], MODEL, composed / "again")
    files = [
        (composed / name / "adapter_model.safetensors").read_bytes() for name in ("again", *NAMES)
    ]
    assert files[0] == files[1]
    assert len(set(files)) == len(NAMES)


def test_a_home_knows_where_its_artifacts_lie(composed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert adapter_folders(home) == {}
    assert set(adapter_folders(composed.parent)) == set(NAMES)
    write_state(home, StackState(artifacts=composed.parent))
    assert adapter_folders(home) == {name: composed / name for name in NAMES}
