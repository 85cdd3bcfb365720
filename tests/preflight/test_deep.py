"""Values that are no numbers are found; on a machine without a GPU by the same code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.preflight.building import write_file
from warmup_lib.preflight.deep import check_values


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_nan_and_infinities_are_named(tmp_path: Path, dtype: torch.dtype) -> None:
    good = torch.ones(4, 4, dtype=dtype)
    bad = good.clone()
    bad[1, 2], bad[3, 3] = float("nan"), float("-inf")
    save_file(
        {"good": good, "bad": bad, "ids": torch.ones(2, dtype=torch.int64)},
        tmp_path / "m.safetensors",
    )
    seen: list[tuple[str, int, int | None]] = []
    (found,) = check_values(tmp_path, "cpu", lambda *step: seen.append(step))
    assert (found.file, found.tensor) == ("m.safetensors", "bad")
    assert found.found == "2 of 16 are NaN or infinite"
    assert seen == [("values", n, 3) for n in (1, 2, 3)]


def test_eight_bit_floats_are_read_too(tmp_path: Path) -> None:
    bad = torch.tensor([1.0, float("nan")]).to(torch.float8_e4m3fn)
    save_file({"bad": bad}, tmp_path / "m.safetensors")
    (found,) = check_values(tmp_path, "cpu")
    assert found.found == "1 of 2 are NaN or infinite"


def test_a_file_that_does_not_load_is_named(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    save_file({"a": torch.ones(100)}, file)
    assert check_values(tmp_path, "cpu") == []
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size - 1)
    (found,) = check_values(tmp_path, "cpu")
    assert found.file == "m.safetensors"


def test_a_tensor_that_does_not_load_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    header = {
        "a": {"dtype": "F4", "shape": [2, 2], "data_offsets": [0, 2]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [2, 10]},
    }
    write_file(tmp_path / "m.safetensors", header)
    with (tmp_path / "m.safetensors").open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\x00\x00\x80\x7f")
    unread, infinite = check_values(tmp_path, "cpu")
    assert (unread.file, unread.tensor) == ("m.safetensors", "a")
    assert "could not be read" in unread.found
    assert (infinite.tensor, infinite.found) == ("b", "1 of 2 are NaN or infinite")


def test_a_named_pipe_is_not_loaded(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.safetensors")
    assert check_values(tmp_path, "cpu") == []
