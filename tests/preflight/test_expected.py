"""The tensors that a config implies are those that the transformers library makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.preflight.building import TINY, healthy, write_config
from warmup_lib.preflight.check import check_model
from warmup_lib.preflight.expected import FAMILIES, Model, NotKnown

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *[(family, {"tie_word_embeddings": tied}) for family in FAMILIES for tied in (True, False)],
    ("LlamaForCausalLM", {"attention_bias": True, "mlp_bias": True}),
    ("LlamaForCausalLM", {"head_dim": 16}),
    ("MistralForCausalLM", {"head_dim": 16}),
    ("Qwen3ForCausalLM", {"head_dim": 16, "attention_bias": True}),
    ("GemmaForCausalLM", {"attention_bias": True}),
    ("Gemma2ForCausalLM", {"attention_bias": True, "head_dim": 8}),
    ("Gemma3ForCausalLM", {"attention_bias": True}),
]


def made(family: str, more: dict[str, Any]) -> Any:
    """Return a model of the library: the family's own configuration class with small sizes."""
    import transformers

    config_class: Any = getattr(transformers, family).config_class
    config = config_class(**{**SIZES, "pad_token_id": 0, **more})
    return getattr(transformers, family)(config)


@pytest.mark.parametrize(("family", "more"), VARIANTS)
def test_a_folder_that_the_library_saved_is_sound(
    tmp_path: Path, family: str, more: dict[str, Any]
) -> None:
    model = made(family, more)
    model.save_pretrained(tmp_path)
    checked = check_model(tmp_path)
    assert [str(finding) for finding in checked.findings] == []
    assert checked.not_checked == ()
    assert checked.tensors == len(list(model.named_parameters()))
    assert checked.tensor_bytes == sum(p.numel() * p.element_size() for p in model.parameters())


def test_the_shapes_are_those_of_the_library_not_only_allowed_by_it() -> None:
    model = made("Qwen3ForCausalLM", {"head_dim": 16, "tie_word_embeddings": False})
    config = model.config.to_dict() | {"architectures": ["Qwen3ForCausalLM"]}
    assert Model(config).tensors() == {
        name: tuple(tensor.shape) for name, tensor in model.named_parameters()
    }


def test_large_models_are_saved_in_parts_with_an_index(tmp_path: Path) -> None:
    model = made("LlamaForCausalLM", {"tie_word_embeddings": False})
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    checked = check_model(tmp_path)
    assert checked.findings == ()
    assert checked.files == len(list(tmp_path.glob("*.safetensors"))) > 2


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "the tensors of MambaForCausalLM are not known"),
        ({"model_type": "bert"}, "the tensors of bert are not known"),
        ({}, "a model that names no architecture"),
        (
            {"architectures": ["Qwen2ForCausalLM"], **SIZES, "num_key_value_heads": None},
            "no usable num_key_value_heads",
        ),
        ({"architectures": ["LlamaForCausalLM"], **SIZES, "hidden_size": "32"}, "hidden_size"),
        ({"architectures": [["LlamaForCausalLM"]]}, "a model that names no architecture"),
        ({"architectures": [{}], "model_type": "bert"}, "the tensors of bert are not known"),
        ({"architectures": "LlamaForCausalLM", "model_type": [1]}, "names no architecture"),
    ],
)
def test_what_is_not_known_is_said(config: dict[str, Any], why: str) -> None:
    with pytest.raises(NotKnown, match=why):
        Model(json.loads(json.dumps(config)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_hidden_layers", 30_000_000),
        ("num_hidden_layers", 10_001),
        ("num_hidden_layers", True),
        ("vocab_size", 10**4000),
        ("hidden_size", 0),
        ("head_dim", "8"),
        ("num_attention_heads", 2.0),
    ],
)
def test_a_size_that_no_model_has_is_one_finding(tmp_path: Path, name: str, value: Any) -> None:
    healthy(tmp_path, TINY)
    write_config(tmp_path, TINY | {name: value})
    checked = check_model(tmp_path)
    (finding,) = checked.findings
    assert (finding.severity, finding.file) == ("error", "config.json")
    assert f"no usable {name}" in finding.found


def test_the_most_layers_that_count_are_told() -> None:
    config = {"architectures": ["LlamaForCausalLM"], **SIZES, "num_hidden_layers": 10_000}
    assert len(Model(config).tensors()) == 3 + 9 * 10_000
