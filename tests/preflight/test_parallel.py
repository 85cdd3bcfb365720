"""Ranks: what can't be shared evenly, and files that are not the parts of one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.building import TINY, healthy, rank_of_two, write_config, write_tensors
from warmup_lib.preflight.check import check_model

DOWN = "model.layers.0.mlp.down_proj.weight"
QKV = "model.layers.1.self_attn.qkv_proj.weight"
NAMES = {
    "vllm": "model-rank-{}-part-0.safetensors",
    "megatron": "mp_rank_0{}/model.safetensors",
    "plain": "rank{}.safetensors",
}


def cut(folder: Path, name: str = "vllm", **spoilt: Any) -> None:
    """Write the tiny model cut for two ranks; `spoilt` changes rank 1."""
    write_config(folder, TINY)
    for rank in (0, 1):
        tensors = rank_of_two() | (spoilt if rank else {})
        present = {n: spec for n, spec in tensors.items() if spec is not None}
        write_tensors(folder / NAMES[name].format(rank), present)


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_one_model_pass(tmp_path: Path, name: str) -> None:
    cut(tmp_path, name)
    for asked in (1, 2):
        checked = check_model(tmp_path, asked)
        assert (checked.findings, checked.not_checked, checked.files) == ((), (), 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(16, 13), (16, 24), (12, 16)])
def test_a_rank_file_with_a_shape_that_does_not_divide_is_named(
    tmp_path: Path, name: str, shape: tuple[int, int]
) -> None:
    cut(tmp_path, name, **{DOWN: ("BF16", shape)})
    (found,) = check_model(tmp_path).findings
    assert (found.file, found.tensor) == (NAMES[name].format(1), DOWN)
    assert found.expected == "16 x 12, a part of 16 x 24 for each of 2 ranks"
    assert found.found == f"{shape[0]} x {shape[1]}"


def test_ranks_are_compared_with_each_other_where_the_architecture_is_unknown(
    tmp_path: Path,
) -> None:
    cut(tmp_path, **{QKV: ("BF16", (15, 16)), DOWN: None})
    write_config(tmp_path, TINY | {"architectures": ["OtherForCausalLM"]})
    missing, uneven = check_model(tmp_path).findings
    assert (missing.file, missing.tensor) == (NAMES["vllm"].format(1), DOWN)
    assert "no such tensor" in missing.found
    assert (uneven.tensor, uneven.found) == (QKV, "15 x 16")
    assert uneven.expected == "16 x 16 as in model-rank-0-part-0.safetensors"


def test_what_every_rank_lacks_is_missing(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    for rank in (0, 1):
        tensors = rank_of_two()
        del tensors[QKV]
        write_tensors(tmp_path / NAMES["vllm"].format(rank), tensors)
    assert [(f.tensor, f.found) for f in check_model(tmp_path).findings] == [
        (QKV, "no such tensor")
    ] * 2


def test_parts_of_one_rank_are_read_together(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    tensors = rank_of_two()
    half = dict(list(tensors.items())[:7])
    rest = {name: spec for name, spec in tensors.items() if name not in half}
    for rank in (0, 1):
        write_tensors(tmp_path / f"model-rank-{rank}-part-0.safetensors", half)
        write_tensors(tmp_path / f"model-rank-{rank}-part-1.safetensors", rest)
    assert check_model(tmp_path).findings == ()


def test_a_rank_without_files_and_another_number_of_ranks_are_named(tmp_path: Path) -> None:
    cut(tmp_path)
    assert "of 2" in str(check_model(tmp_path, 4).findings[0])
    (tmp_path / NAMES["vllm"].format(0)).unlink()
    assert check_model(tmp_path).errors[0].found == "none of rank 0"


def test_pipeline_stages_hold_different_layers(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    for stage in (0, 1):
        ours = {n: s for n, s in rank_of_two().items() if f"layers.{1 - stage}." not in n}
        for rank in (0, 1):
            file = f"model-pp-{stage}-tp-{rank}-part-0.safetensors"
            write_tensors(tmp_path / file, ours)
    checked = check_model(tmp_path)
    assert checked.findings == ()
    assert "pipeline stages" in checked.not_checked[0]


def test_a_vocabulary_may_be_padded_before_it_is_cut(tmp_path: Path) -> None:
    config = TINY | {"vocab_size": 62}
    write_config(tmp_path, config)
    padded = rank_of_two(TINY)
    for rank in (0, 1):
        write_tensors(tmp_path / NAMES["vllm"].format(rank), padded)
    assert check_model(tmp_path).findings == ()
    for rank in (0, 1):
        write_tensors(tmp_path / NAMES["vllm"].format(rank), rank_of_two(config))
    assert check_model(tmp_path).findings == ()


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (1, []),
        (2, []),
        (4, []),  # two ranks hold a copy of each key head
        (3, ["num_attention_heads", "hidden_size", "num_key_value_heads", "vocab_size"]),
        (8, ["num_attention_heads"]),
        (16, ["num_attention_heads", "intermediate_size"]),
    ],
)
def test_sizes_that_so_many_ranks_cannot_share_are_named(
    tmp_path: Path, ranks: int, said: list[str]
) -> None:
    healthy(tmp_path)
    findings = check_model(tmp_path, ranks).findings
    assert [f.expected.split()[1] for f in findings] == said
    assert {f.file for f in findings} <= {"config.json"}


def test_a_vocabulary_that_padding_makes_even_is_a_warning(tmp_path: Path) -> None:
    healthy(tmp_path, TINY | {"vocab_size": 63})
    checked = check_model(tmp_path, 2)
    assert checked.errors == []
    assert [f.found for f in checked.findings] == ["63"]


def test_division_is_checked_of_quantised_folders_too(tmp_path: Path) -> None:
    healthy(tmp_path, TINY | {"quantization_config": {"quant_method": "gptq"}})
    checked = check_model(tmp_path, 8)
    assert len(checked.errors) == 1
    assert "gptq" in checked.not_checked[0]


def test_a_rank_that_no_model_is_cut_into_is_one_finding(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    name = "model-rank-30000000-part-0.safetensors"
    write_tensors(tmp_path / name, rank_of_two())
    (finding,) = check_model(tmp_path).findings
    assert (finding.file, finding.expected) == (name, "at most 1,024 ranks")
