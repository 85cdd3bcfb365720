"""Which files of a folder count, and to which rank they belong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.preflight.building import TINY, write_config, write_tensors
from warmup_lib.errors import InputDataError
from warmup_lib.preflight.folder import read_folder

ONE: Any = {"a": ("F32", (2,))}


@pytest.mark.parametrize(
    ("files", "ranks"),
    [
        (["model.safetensors"], {}),
        (["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], {}),
        (["lora-rank-64.safetensors", "my_LoRA_rank8.safetensors"], {}),
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
    "index",
    ["[]", "{", '{"weight_map": 3}', '{"weight_map": {"a": 1}}', "{}", '{"weight_map": {}}'],
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


def indexed(folder: Path, *files: str) -> None:
    write_config(folder, TINY)
    index = {"weight_map": {f"t{number}": file for number, file in enumerate(files)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize("inside", ["../outside.safetensors", "a/../../outside.safetensors", "/"])
def test_an_index_does_not_lead_out_of_the_folder(tmp_path: Path, inside: str) -> None:
    outside = tmp_path / "outside.safetensors"
    write_tensors(outside, {"t0": ("F32", (2,))})
    (tmp_path / "model" / "a").mkdir(parents=True)
    indexed(tmp_path / "model", str(outside) if inside == "/" else inside)
    folder = read_folder(tmp_path / "model")
    (finding,) = folder.findings
    assert finding.found == "a name outside of the folder"
    assert "outside.safetensors" in finding.expected
    assert folder.headers == {}


def test_links_are_followed_as_in_the_hugging_face_cache(tmp_path: Path) -> None:
    write_tensors(tmp_path / "blobs" / "0a1b", {"t0": ("F32", (2,))})
    indexed(tmp_path / "snapshot", "model.safetensors")
    (tmp_path / "snapshot" / "model.safetensors").symlink_to("../blobs/0a1b")
    folder = read_folder(tmp_path / "snapshot")
    assert folder.findings == []
    assert set(folder.headers["model.safetensors"].tensors) == {"t0"}


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(
    ("odd", "found"),
    [
        (lambda file: file.symlink_to("nowhere"), "it can't be read: No such file or directory"),
        (lambda file: file.symlink_to(file.name), "it can't be read: Too many levels of symbolic"),
        (lambda file: file.mkdir(), "a folder, pipe or device"),
        (os.mkfifo, "a folder, pipe or device"),
    ],
)
def test_what_is_no_file_is_named_and_the_others_are_read(
    tmp_path: Path, odd: Any, found: str, index: bool
) -> None:
    write_config(tmp_path, TINY)
    write_tensors(tmp_path / "sound.safetensors", {"t1": ("F32", (2,))})
    odd(tmp_path / "odd.safetensors")
    if index:
        indexed(tmp_path, "odd.safetensors", "sound.safetensors")
    folder = read_folder(tmp_path)
    (finding,) = folder.findings
    assert (finding.severity, finding.file) == ("error", "odd.safetensors")
    assert finding.found.startswith(found)
    assert set(folder.headers["sound.safetensors"].tensors) == {"t1"}


@pytest.mark.parametrize(
    ("name", "found"),
    [("n" * 300, "File name too long"), ("a\0b", "no such file"), ("a\ud800", "no such file")],
)
def test_a_name_that_no_file_can_have_is_told(tmp_path: Path, name: str, found: str) -> None:
    indexed(tmp_path, name)
    (finding,) = read_folder(tmp_path).findings
    assert (finding.file, finding.found) == ("model.safetensors.index.json", found)
    assert name.encode("unicode_escape").decode() in finding.expected


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_settings_that_lead_nowhere_are_named(tmp_path: Path, name: str) -> None:
    indexed(tmp_path, "sound.safetensors")
    write_tensors(tmp_path / "sound.safetensors", {"t0": ("F32", (2,))})
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("nowhere")
    (finding,) = read_folder(tmp_path).findings
    assert (finding.severity, finding.file) == ("error", name)


def test_of_what_may_not_be_read_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(folder: Path, file: str) -> None:
        # The superuser, who may run the tests, is denied nothing.
        raise PermissionError(13, "Permission denied", str(folder / file))

    write_tensors(tmp_path / "model.safetensors", ONE)
    monkeypatch.setattr("warmup_lib.preflight.folder.read_header", denied)
    with pytest.raises(InputDataError, match=r"model\.safetensors can't be read: Perm"):
        read_folder(tmp_path)


def test_of_many_missing_parts_the_first_are_named(tmp_path: Path) -> None:
    write_config(tmp_path, TINY)
    write_tensors(tmp_path / "model-00002-of-30000000.safetensors", ONE)
    (finding,) = read_folder(tmp_path).findings
    assert finding.found == "without 1, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 29,999,989 more"
