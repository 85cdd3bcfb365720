"""Which files of a folder count, and to which rank they belong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.preflight.building import TINY, write_config, write_tensors
from warmup_lib.preflight.folder import read_folder

ONE: Any = {"a": ("F32", (2,))}


@pytest.mark.parametrize(
    ("files", "ranks"),
    [
        (["model.safetensors"], {}),
        (["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], {}),
        (["mtp_0.safetensors", "ranking.safetensors"], {}),
        (["model-rank-0-part-0.safetensors", "model-rank-10-part-0.safetensors"], {0: {0, 10}}),
        (["model-pp-1-tp-3-part-0.safetensors"], {1: {3}}),
        (["mp_rank_00/model.safetensors", "mp_rank_01/model.safetensors"], {0: {0, 1}}),
        (["mp_rank_01_002/model.safetensors"], {2: {1}}),
        (["mp_rank_01_model_states.safetensors"], {0: {1}}),
    ],
)
def test_ranks_are_told_by_the_names_that_tools_write(
    tmp_path: Path, files: list[str], ranks: dict[int, set[int]]
) -> None:
    for file in files:
        write_tensors(tmp_path / file, ONE)
    folder = read_folder(tmp_path)
    assert {stage: set(of_stage) for stage, of_stage in folder.ranks.items()} == ranks
    assert set(folder.headers) == set(files)


def test_a_makers_own_copy_counts_only_where_there_is_no_other(tmp_path: Path) -> None:
    write_tensors(tmp_path / "consolidated.safetensors", ONE)
    assert set(read_folder(tmp_path).headers) == {"consolidated.safetensors"}
    write_tensors(tmp_path / "model.safetensors", ONE)
    assert set(read_folder(tmp_path).headers) == {"model.safetensors"}


@pytest.mark.parametrize(
    "index", ["[]", "{", '{"weight_map": 3}', '{"weight_map": {"a": 1}}', "{}"]
)
def test_an_index_that_is_none_is_named_and_all_files_count(tmp_path: Path, index: str) -> None:
    write_config(tmp_path, TINY)
    write_tensors(tmp_path / "model.safetensors", ONE)
    (tmp_path / "model.safetensors.index.json").write_text(index)
    folder = read_folder(tmp_path)
    (finding,) = folder.findings
    assert finding.file == "model.safetensors.index.json"
    assert set(folder.headers) == {"model.safetensors"}


def test_all_that_is_read_is_counted(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    write_tensors(tmp_path / "model.safetensors", ONE)
    index = json.dumps({"weight_map": {"a": "model.safetensors"}})
    (tmp_path / "model.safetensors.index.json").write_text(index)
    (tmp_path / "tokenizer.json").write_text(" " * 5_000_000)
    read = sum(file.stat().st_size for file in tmp_path.iterdir()) - 5_000_000 - 8
    assert read_folder(tmp_path).bytes_read == read
