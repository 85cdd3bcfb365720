"""What is told of a folder can be shown anywhere, whatever the folder's maker called things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.preflight.building import TINY, healthy, llama, write_config, write_tensors
from warmup_lib.cli import main
from warmup_lib.preflight.findings import printable

STEERING = "\x1b]0;owned\x07\ud800"
TOLD = r"\x1b]0;owned\x07\ud800"


@given(st.text(st.characters(), max_size=20))
def test_what_is_printable_is_utf_8_and_stays_as_it_is(text: str) -> None:
    told = printable(text)
    assert told.isprintable()
    assert told.encode().decode() == told
    assert printable(told) == told
    if text.isprintable():
        assert told == text


def test_long_texts_are_cut() -> None:
    assert printable("a" * 500) == "a" * 500
    assert printable("a" * 10**6) == "a" * 500 + "…"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_doctor_does_not_pass_on_what_steers_a_terminal(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    healthy(tmp_path)
    write_tensors(tmp_path / "model.safetensors", llama() | {STEERING: ("BF16", (2,))})
    result = CliRunner().invoke(main, ["doctor", "--model-dir", str(tmp_path), *more])
    assert result.exit_code == 1
    assert STEERING[:2] not in result.stdout
    if more:
        (finding,) = json.loads(result.stdout)["findings"]
        assert finding["tensor"] == TOLD
    else:
        assert TOLD in result.stdout


def test_an_architecture_that_steers_a_terminal_is_escaped_too(tmp_path: Path) -> None:
    healthy(tmp_path)
    write_config(tmp_path, TINY | {"architectures": [STEERING]})
    result = CliRunner().invoke(main, ["doctor", "--model-dir", str(tmp_path), "--json"])
    assert result.exit_code == 0
    why = json.loads(result.stdout)["traps"]["weight_shards"]["evidence"]
    assert f"the tensors of {TOLD} are not known" in why
