"""Each fault of a model folder is named by file and tensor; sound and unknown folders pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.preflight.building import (
    TINY,
    healthy,
    llama,
    write_config,
    write_file,
    write_tensors,
)
from warmup_lib.errors import InputDataError
from warmup_lib.preflight.check import Checked, check_model
from warmup_lib.stack import StackState

WEIGHTS = "model.safetensors"
UP = "model.layers.1.mlp.up_proj.weight"


def only(folder: Path) -> Any:
    (finding,) = check_model(folder).findings
    return finding


def test_a_sound_folder_passes(tmp_path: Path) -> None:
    healthy(tmp_path)
    data = 2 * 5968  # two tables of 64 x 16, a norm, and two layers of 1,952 values, 2 bytes each
    read = sum(file.stat().st_size for file in tmp_path.iterdir()) - data
    assert check_model(tmp_path) == Checked((), (), 1, 21, data, read)


def test_a_transposed_tensor_is_named(tmp_path: Path) -> None:
    tensors = healthy(tmp_path)
    tensors[UP] = ("BF16", (16, 24))
    write_tensors(tmp_path / WEIGHTS, tensors)
    found = only(tmp_path)
    assert (found.severity, found.file, found.tensor) == ("error", WEIGHTS, UP)
    assert (found.expected, found.found) == ("24 x 16", "16 x 24 (transposed)")


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    tensors = healthy(tmp_path)
    del tensors[UP]
    write_tensors(tmp_path / WEIGHTS, tensors)
    found = only(tmp_path)
    assert (found.tensor, found.expected, found.found) == (UP, "24 x 16", "no such tensor")


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    healthy(tmp_path)
    with (tmp_path / WEIGHTS).open("r+b") as file:
        file.truncate((tmp_path / WEIGHTS).stat().st_size - 100)
    found = only(tmp_path)
    assert found.file == WEIGHTS
    assert "cut off" in found.found
    assert "100 are missing" in found.found


def in_parts(folder: Path) -> dict[str, str]:
    """Write the tiny model in two parts; return the index's map."""
    write_config(folder, TINY)
    tensors = llama()
    names = list(tensors)
    files = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index = {name: files[number % 2] for number, name in enumerate(names)}
    for file in files:
        write_tensors(folder / file, {n: tensors[n] for n in names if index[n] == file})
    write_index(folder, index)
    return index


def write_index(folder: Path, index: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def test_parts_with_their_index_pass(tmp_path: Path) -> None:
    in_parts(tmp_path)
    checked = check_model(tmp_path)
    assert (checked.findings, checked.files, checked.tensors) == ((), 2, 21)


def test_an_index_that_names_an_absent_file_is_named(tmp_path: Path) -> None:
    index = in_parts(tmp_path)
    gone = "model-00002-of-00002.safetensors"
    (tmp_path / gone).unlink()
    findings = check_model(tmp_path).findings
    assert findings[0].file == "model.safetensors.index.json"
    assert findings[0].expected == f"the file {gone} with 10 of its tensors"
    # Its tensors are not reported one by one; that a numbered part is missing is.
    assert len(findings) == 2
    assert findings[1].found == "without 2"
    write_index(tmp_path, dict.fromkeys(index, "elsewhere.safetensors"))
    (found,) = check_model(tmp_path).findings
    assert "elsewhere.safetensors with 21 of its tensors" in found.expected


def test_a_tensor_that_the_index_has_in_the_wrong_file_is_named(tmp_path: Path) -> None:
    index = in_parts(tmp_path)
    right = index[UP]
    (wrong,) = {*index.values()} - {right}
    write_index(tmp_path, index | {UP: wrong})
    found = only(tmp_path)
    assert (found.file, found.tensor, found.found) == (wrong, UP, f"it is in {right}")


def test_a_tensor_of_the_index_that_no_file_holds_is_named_once(tmp_path: Path) -> None:
    index = in_parts(tmp_path)
    kept = {n: s for n, s in llama().items() if index[n] == index[UP] and n != UP}
    write_tensors(tmp_path / index[UP], kept)
    found = only(tmp_path)
    assert (found.file, found.tensor, found.found) == (index[UP], UP, "no such tensor")


def test_the_index_may_name_files_in_a_folder_below(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    write_tensors(tmp_path / "parts" / "all.safetensors", llama())
    write_index(tmp_path, dict.fromkeys(llama(), "parts/all.safetensors"))
    checked = check_model(tmp_path)
    assert (checked.findings, checked.tensors) == ((), 21)


def test_files_that_the_index_does_not_name_do_not_count(tmp_path: Path) -> None:
    in_parts(tmp_path)
    write_file(tmp_path / "consolidated.safetensors", {}, 99)
    write_tensors(tmp_path / "old.safetensors", llama())
    assert check_model(tmp_path).findings == ()


def test_a_tensor_in_two_files_is_named(tmp_path: Path) -> None:
    healthy(tmp_path)
    write_tensors(tmp_path / "more.safetensors", {UP: ("BF16", (24, 16))})
    found = only(tmp_path)
    assert (found.file, found.tensor) == ("more.safetensors", UP) or found.file == WEIGHTS
    assert "holds it too" in found.found


def test_a_numbered_part_that_is_not_there_is_named_without_an_index(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    write_tensors(tmp_path / "model-00002-of-00003.safetensors", llama())
    found = only(tmp_path)
    assert (found.expected, found.found) == ("3 parts of model", "without 1, 3")


def test_tied_weights_need_no_output_table_and_one_of_the_right_shape_may_be_there(
    tmp_path: Path,
) -> None:
    tied = TINY | {"tie_word_embeddings": True}
    tensors = healthy(tmp_path, tied)
    assert "lm_head.weight" not in tensors
    assert check_model(tmp_path).findings == ()
    write_tensors(tmp_path / WEIGHTS, {**tensors, "lm_head.weight": ("BF16", (64, 16))})
    assert check_model(tmp_path).findings == ()
    write_tensors(tmp_path / WEIGHTS, {**tensors, "lm_head.weight": ("BF16", (63, 16))})
    assert only(tmp_path).tensor == "lm_head.weight"
    del tensors["model.embed_tokens.weight"]
    write_tensors(tmp_path / WEIGHTS, tensors)
    assert only(tmp_path).tensor == "model.embed_tokens.weight"


def test_tensors_that_the_config_does_not_imply_are_named(tmp_path: Path) -> None:
    tensors = healthy(tmp_path)
    bias = "model.layers.0.self_attn.q_proj.bias"
    computed = "model.layers.0.self_attn.rotary_emb.inv_freq"
    more = {bias: ("BF16", (16,)), computed: ("F32", (2,))}
    write_tensors(tmp_path / WEIGHTS, tensors | more)
    checked = check_model(tmp_path)
    assert [finding.tensor for finding in checked.errors] == [bias]


def test_a_config_of_another_size_is_named(tmp_path: Path) -> None:
    healthy(tmp_path)
    write_config(tmp_path, TINY | {"num_hidden_layers": 1})
    assert {finding.tensor for finding in check_model(tmp_path).findings} == {
        name for name in llama() if ".layers.1." in name
    }


def test_other_float_types_are_a_warning_and_integers_an_error(tmp_path: Path) -> None:
    tensors = healthy(tmp_path)
    norm = "model.norm.weight"
    write_tensors(tmp_path / WEIGHTS, tensors | {norm: ("F32", (16,))})
    checked = check_model(tmp_path)
    assert checked.errors == []
    assert checked.findings[0].found == "F32 in this and 0 more tensors"
    write_tensors(tmp_path / WEIGHTS, tensors | {norm: ("I32", (16,))})
    (found,) = check_model(tmp_path).errors
    assert (found.tensor, found.expected, found.found) == (norm, "bfloat16", "I32")


@pytest.mark.parametrize(
    ("config", "files", "tensors"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, {}, {}),
        ({}, {"quantize_config.json": "{}"}, {}),
        ({}, {}, {"model.layers.0.self_attn.q_proj.qweight": ("I32", (2, 16))}),
    ],
)
def test_a_quantised_folder_gives_no_false_alarm(
    tmp_path: Path, config: dict[str, Any], files: dict[str, str], tensors: dict[str, Any]
) -> None:
    packed = {
        "model.layers.0.self_attn.k_proj.qweight": ("I32", (2, 8)),
        "model.layers.0.self_attn.k_proj.scales": ("F16", (1, 8)),
        "model.layers.0.self_attn.k_proj.g_idx": ("I32", (16,)),
        "model.embed_tokens.weight": ("F16", (64, 16)),
    }
    write_config(tmp_path, TINY | config)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    write_tensors(tmp_path / WEIGHTS, packed | tensors)
    checked = check_model(tmp_path)
    assert checked.findings == ()
    assert "quantised" in checked.not_checked[0]
    # What holds for all files is still looked at.
    with (tmp_path / WEIGHTS).open("r+b") as file:
        file.truncate((tmp_path / WEIGHTS).stat().st_size - 4)
    assert "cut off" in only(tmp_path).found


def test_an_unknown_architecture_is_checked_for_what_holds_for_all(tmp_path: Path) -> None:
    write_config(tmp_path, TINY | {"architectures": ["MambaForCausalLM"]})
    write_tensors(tmp_path / WEIGHTS, {"mixer": ("F32", (3, 3))})
    checked = check_model(tmp_path)
    assert checked.findings == ()
    assert checked.not_checked == ("shapes: the tensors of MambaForCausalLM are not known here",)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="no model in"):
        check_model(tmp_path)
    with pytest.raises(InputDataError, match="no such folder"):
        check_model(tmp_path / "nowhere")


def test_a_config_or_weights_that_are_not_there_are_named(tmp_path: Path) -> None:
    healthy(tmp_path)
    (tmp_path / "config.json").unlink()
    assert (only(tmp_path).file, only(tmp_path).found) == ("config.json", "no such file")
    (tmp_path / "config.json").write_text("{")
    assert (only(tmp_path).file, only(tmp_path).expected) == ("config.json", "a JSON object")
    write_config(tmp_path, TINY)
    (tmp_path / WEIGHTS).unlink()
    assert only(tmp_path).expected == "safetensors files"
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    checked = check_model(tmp_path)
    assert checked.findings == ()
    assert checked.not_checked == ("weights: they are not in safetensors files",)


def bytes_read_by_this_process() -> int:
    stat = Path("/proc/self/io").read_text()
    return int(next(line for line in stat.splitlines() if line.startswith("rchar")).split()[1])


def test_of_a_file_of_270_megabytes_less_than_one_is_read(tmp_path: Path) -> None:
    large = TINY | {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    }
    healthy(tmp_path, large)
    assert (tmp_path / WEIGHTS).stat().st_size > 269_000_000
    before = bytes_read_by_this_process()
    checked = check_model(tmp_path)
    read = bytes_read_by_this_process() - before
    assert checked.findings == ()
    assert checked.tensors == 272
    assert checked.bytes_read <= read < 1_000_000


@pytest.mark.host
def test_the_embedded_model_passes(stack_host: StackState, stack_artifacts: Path) -> None:
    assert stack_host.hosts
    checked = check_model(stack_artifacts / "model")
    assert (checked.findings, checked.not_checked, checked.tensors) == ((), (), 272)
    assert checked.bytes_read < 1_000_000
