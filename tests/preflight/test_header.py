"""What a header shows, and that no damage of a file goes unseen."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.preflight.building import header_of, write_file
from warmup_lib.preflight.header import Header, Tensor, read_header

TWO = header_of({"a": ("F32", (2, 3)), "b": ("BF16", (4,))})


def read(folder: Path, header: Any, data: int | None = None) -> Header:
    write_file(folder / "m.safetensors", header, data)
    return read_header(folder, "m.safetensors")


def test_a_sound_file_shows_its_tensors_and_only_the_header_is_read(tmp_path: Path) -> None:
    header = read(tmp_path, TWO)
    assert header.findings == []
    assert header.tensors["a"] == Tensor("a", "F32", (2, 3), 0, 24)
    assert header.tensors["b"] == Tensor("b", "BF16", (4,), 24, 32)
    assert header.bytes_read == 8 + len(json.dumps(TWO))


def changed(name: str, **entry: Any) -> dict[str, Any]:
    return TWO | {name: TWO[name] | entry}


@pytest.mark.parametrize(
    ("header", "data", "tensor", "said"),
    [
        (TWO, 31, "b", "cut off: 31 bytes, 1 are missing, which 1 tensor reach"),
        (TWO, 10, "a", "cut off: 10 bytes, 22 are missing, which 2 tensors reach"),
        (TWO, 40, None, "8 bytes more, which belong to none"),
        (changed("a", shape=[2, 4]), None, "a", "24 bytes, expected 32 bytes for F32 2 x 4"),
        (changed("b", data_offsets=[20, 28]), None, "b", "begins at byte 20 and overlaps"),
        (changed("b", data_offsets=[28, 36]), None, "b", "begins at byte 28 and leaves a hole"),
        (changed("b", data_offsets=[32, 24]), None, None, "an unreadable header"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, header: Any, data: int | None, tensor: str | None, said: str
) -> None:
    findings = read(tmp_path, header, data).findings
    assert [f.tensor for f in findings] == [tensor]
    assert said in str(findings[0])
    assert findings[0].file == "m.safetensors"
    assert findings[0].trap == "weight_shards"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "a file of 0 bytes, cut off in its header"),
        (b"1234567", "a file of 7 bytes, cut off in its header"),
        ((900).to_bytes(8, "little") + b"{", "expected a header of 900 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "run `git lfs pull`"),
        ((2).to_bytes(8, "little") + b"[]", "an unreadable header"),
        ((4).to_bytes(8, "little") + b"{\xff}}", "an unreadable header"),
        ((7).to_bytes(8, "little") + b'{"a":1}', "an unreadable header"),
        ((9**6).to_bytes(8, "little") + b"[" * 9**6, "an unreadable header"),
    ],
)
def test_a_file_without_a_header_is_named(tmp_path: Path, raw: bytes, said: str) -> None:
    (tmp_path / "m.safetensors").write_bytes(raw)
    (finding,) = read_header(tmp_path, "m.safetensors").findings
    assert said in str(finding)


def test_a_name_that_is_there_twice_is_named(tmp_path: Path) -> None:
    entry = json.dumps(TWO["a"])
    raw = f'{{"a":{entry},"a":{entry}}}'.encode()
    (tmp_path / "m.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(24))
    (finding,) = read_header(tmp_path, "m.safetensors").findings
    assert finding.tensor == "a"
    assert "twice in one header" in finding.found


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": "12"},
        {"shape": [True, 6]},
        {"shape": [2.0, 3]},
        {"shape": ["2", "3"]},
        {"shape": [float("inf")]},
        {"shape": [10**4000, 10**4000]},
        {"shape": [2**63]},
        {"shape": [-2, -3]},
        {"shape": [1] * 65},
        {"shape": None},
        {"data_offsets": [0, 24, 24]},
        {"data_offsets": [False, 24]},
        {"dtype": ["F32"]},
    ],
)
def test_shapes_and_places_are_lists_of_counts(tmp_path: Path, entry: dict[str, Any]) -> None:
    header = read(tmp_path, changed("a", **entry), 32)
    (finding,) = header.findings
    assert (finding.file, header.tensors) == ("m.safetensors", {})
    assert "an unreadable header" in finding.found


def test_the_largest_shape_is_told(tmp_path: Path) -> None:
    header = read(tmp_path, changed("a", shape=[2**63 - 1] * 64), 32)
    (finding,) = header.findings
    assert (finding.tensor, finding.found) == ("a", "24 bytes")
    assert len(finding.expected) == 501


@pytest.mark.parametrize("name", ["a\ud800", "a\x1b[31m", "a\n", "a\u202e"])
def test_what_a_terminal_should_not_get_is_escaped(tmp_path: Path, name: str) -> None:
    header = read(tmp_path, header_of({name: ("F32", (2,))}), 4)
    (finding,) = header.findings
    assert finding.tensor == name.encode("unicode_escape").decode()
    assert str(finding).encode().decode().isprintable()


def test_a_named_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.safetensors")
    (finding,) = read_header(tmp_path, "m.safetensors").findings
    assert (finding.file, finding.expected) == ("m.safetensors", "a file")


ARRAYS = st.dictionaries(
    st.text("abcxyz._0", min_size=1, max_size=8),
    st.tuples(
        st.sampled_from([np.float32, np.float16, np.int8, np.int64, np.bool_]),
        st.lists(st.integers(0, 4), max_size=3),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(arrays=ARRAYS, cut=st.floats(0, 1, exclude_max=True))
def test_what_the_library_writes_is_sound_and_cut_anywhere_it_is_not(
    tmp_path_factory: pytest.TempPathFactory, arrays: Any, cut: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    raw = save({name: np.zeros(shape, kind) for name, (kind, shape) in arrays.items()})
    file = folder / "m.safetensors"
    file.write_bytes(raw)
    whole = read_header(folder, file.name)
    assert whole.findings == []
    assert {n: t.shape for n, t in whole.tensors.items()} == {
        n: tuple(shape) for n, (_, shape) in arrays.items()
    }
    file.write_bytes(raw[: int(len(raw) * cut)])
    assert read_header(folder, file.name).findings
