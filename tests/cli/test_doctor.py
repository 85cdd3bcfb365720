"""The doctor's answers and exit codes over model folders, sound and spoilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.preflight.building import (
    TINY,
    healthy,
    llama,
    rank_of_two,
    write_config,
    write_tensors,
)
from warmup_lib.cli import main
from warmup_lib.stack import StackState

TRAPS = (
    "weight_shards",
    "tokenisation",
    "kv_length",
    "tenant",
    "bypass",
    "key_dimensions",
    "out_of_step",
)
UP = "model.layers.1.mlp.up_proj.weight"
WEIGHTS = "model.safetensors"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["doctor", *map(str, arguments)])


def asked(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    result = run(*arguments, "--json")
    (line,) = result.stdout.strip().splitlines()
    found: dict[str, Any] = json.loads(line)
    return result.exit_code, found


def transposed(folder: Path) -> None:
    write_tensors(folder / WEIGHTS, llama() | {UP: ("BF16", (16, 24))})


def missing(folder: Path) -> None:
    write_tensors(folder / WEIGHTS, {name: s for name, s in llama().items() if name != UP})


def truncated(folder: Path) -> None:
    with (folder / WEIGHTS).open("r+b") as file:
        file.truncate(5_000)


def absent(folder: Path) -> None:
    index = {"weight_map": dict.fromkeys(llama(), "model-1.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def uneven(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    for rank in (0, 1):
        spoilt = {"model.layers.0.mlp.down_proj.weight": ("BF16", (16, 11))} if rank else {}
        write_tensors(folder / f"model-rank-{rank}-part-0.safetensors", rank_of_two() | spoilt)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (transposed, [WEIGHTS, UP, "16 x 24 (transposed)", "24 x 16"]),
        (missing, [UP, "no such tensor"]),
        (truncated, [WEIGHTS, "cut off"]),
        (absent, ["model.safetensors.index.json", "model-1.safetensors", "no such file"]),
        (
            uneven,
            ["model-rank-1-part-0.safetensors", "layers.0.mlp.down_proj", "16 x 11", "16 x 12"],
        ),
    ],
)
def test_a_fault_is_named_and_exits_1(tmp_path: Path, spoil: Any, named: list[str]) -> None:
    healthy(tmp_path)
    assert asked("--model-dir", tmp_path)[0] == 0
    spoil(tmp_path)
    code, answer = asked("--model-dir", tmp_path)
    assert code == 1
    trap = answer["traps"]["weight_shards"]
    assert trap["status"] == "found"
    assert all(word in trap["evidence"] for word in named), trap["evidence"]
    (finding, *_) = answer["findings"]
    assert set(finding) == {"trap", "severity", "file", "tensor", "expected", "found", "fix"}
    plain = run("--model-dir", tmp_path)
    assert plain.exit_code == 1
    assert all(word in plain.stdout for word in named)


def test_a_sound_folder_is_ok_and_all_seven_traps_are_told(tmp_path: Path) -> None:
    healthy(tmp_path)
    code, answer = asked("--model-dir", tmp_path)
    assert code == 0
    assert tuple(answer["traps"]) == TRAPS
    assert answer["traps"].pop("weight_shards")["status"] == "ok"
    assert {trap["status"] for trap in answer["traps"].values()} == {"not_checked"}
    assert all(trap["evidence"] for trap in answer["traps"].values())
    assert answer["findings"] == []


def test_nothing_given_is_bad_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path))
    done = run("--lake", tmp_path)
    assert done.exit_code == 2
    assert "give --requests, --redis, --host or --model-dir" in done.output


def test_without_options_the_targets_of_the_settings_are_looked_at(tmp_path: Path) -> None:
    targets = [{"kind": "redis", "name": "cache", "url": "redis://127.0.0.1:1"}]
    (tmp_path / "warmup.yaml").write_text(json.dumps({"targets": targets}))
    done = run("--config", tmp_path / "warmup.yaml")
    assert done.exit_code == 1
    assert "looking at redis 'cache' of the settings" in done.stderr
    assert "the Redis is down" in done.stderr


def test_a_log_without_requests_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    done = run("--requests", tmp_path / "log.jsonl")
    assert done.exit_code == 2
    assert "the log holds no requests" in done.output


def test_what_can_not_be_checked_is_said_and_a_warning_is_no_fault(tmp_path: Path) -> None:
    write_config(tmp_path, TINY | {"quantization_config": {"quant_method": "gptq"}})
    write_tensors(tmp_path / WEIGHTS, {"model.x.qweight": ("I32", (2, 2))})
    code, answer = asked("--model-dir", tmp_path)
    assert code == 0
    assert answer["traps"]["weight_shards"]["status"] == "not_checked"
    assert "quantised (gptq)" in answer["traps"]["weight_shards"]["evidence"]
    healthy(tmp_path, TINY | {"dtype": "float16"})
    code, answer = asked("--model-dir", tmp_path)
    assert code == 0
    assert answer["traps"]["weight_shards"]["status"] == "ok"
    assert [finding["severity"] for finding in answer["findings"]] == ["warning"]


def test_ranks_that_can_not_share_the_model_are_found(tmp_path: Path) -> None:
    healthy(tmp_path)
    assert asked("--model-dir", tmp_path, "--tensor-parallel", "2")[0] == 0
    code, answer = asked("--model-dir", tmp_path, "--tensor-parallel", "8")
    assert code == 1
    assert "num_attention_heads" in answer["traps"]["weight_shards"]["evidence"]


def test_many_faults_are_counted_in_the_evidence_and_all_are_listed(tmp_path: Path) -> None:
    healthy(tmp_path)
    write_config(tmp_path, TINY | {"hidden_size": 32})
    _, answer = asked("--model-dir", tmp_path)
    assert answer["traps"]["weight_shards"]["evidence"].endswith(" | and 18 more")
    assert len(answer["findings"]) == 21


def test_deep_reads_the_values(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    values = {name: torch.ones(shape, dtype=torch.bfloat16) for name, (_, shape) in llama().items()}
    write_config(tmp_path, TINY)
    save_file(values, tmp_path / WEIGHTS)
    code, answer = asked("--model-dir", tmp_path, "--deep")
    assert code == 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    assert answer["traps"]["weight_shards"]["evidence"].endswith(f"every value read on {device}")
    values[UP][3, 3] = float("nan")
    save_file(values, tmp_path / WEIGHTS)
    assert asked("--model-dir", tmp_path)[0] == 0
    code, answer = asked("--model-dir", tmp_path, "--deep")
    assert code == 1
    assert f"{UP}: 1 of 384 are NaN or infinite" in answer["traps"]["weight_shards"]["evidence"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model-dir", "nowhere"], "no such folder: nowhere"),
        (["--model-dir", "."], "it holds neither config.json nor safetensors"),
        (["--deep"], "give --model-dir too"),
        (["--tensor-parallel", "2"], "give --model-dir too"),
        (["--model-dir", ".", "--tensor-parallel", "0"], "not in the range"),
    ],
)
def test_bad_usage_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.host
def test_the_embedded_model_is_ok(stack_host: StackState, stack_artifacts: Path) -> None:
    assert stack_host.hosts
    code, answer = asked("--model-dir", stack_artifacts / "model", "--deep")
    assert (code, answer["traps"]["weight_shards"]["status"]) == (0, "ok")
