"""An adapter's hash stands for its settings and weights, and for nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.targets.tiny_adapters import write_adapter
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.layers.folders import adapter_folders, content_hash, size_of
from warmup_lib.stack.state import StackState, write_state


def test_the_same_content_anywhere_has_the_same_hash(tmp_path: Path) -> None:
    one = write_adapter(tmp_path / "one", b"w", alpha=16)
    other = write_adapter(tmp_path / "other", b"w", alpha=16)
    settings = json.dumps({"alpha": 16, "r": 8}, indent=2)  # the same, written otherwise
    (tmp_path / "other" / "adapter_config.json").write_text(settings)
    (tmp_path / "other" / "README.md").write_text("what it is")
    assert content_hash(one) == content_hash(other)
    assert len(content_hash(one)) == 64
    assert size_of(one) == len(b"w") + len(json.dumps({"r": 8, "alpha": 16}))


@pytest.mark.parametrize("change", ["weights", "settings", "file name", "another file"])
def test_changed_content_has_another_hash(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "lora"
    before = content_hash(write_adapter(folder, b"abc"))
    if change == "weights":
        write_adapter(folder, b"abd")
    elif change == "settings":
        write_adapter(folder, b"abc", alpha=1)
    elif change == "file name":
        (folder / "adapter_model.safetensors").rename(folder / "model.safetensors")
    else:
        (folder / "more.safetensors").write_bytes(b"")
    assert content_hash(str(folder)) != before


def test_weights_of_the_same_size_and_date_are_noticed(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path, b"abc")
    weights = tmp_path / "adapter_model.safetensors"
    before, dates = content_hash(folder), weights.stat()
    weights.write_bytes(b"xyz")
    os.utime(weights, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    assert content_hash(folder) != before


@pytest.mark.parametrize("lacking", ["folder", "settings", "weights", "sense"])
def test_a_folder_without_an_adapter_is_refused(tmp_path: Path, lacking: str) -> None:
    folder = tmp_path / "lora"
    if lacking != "folder":
        write_adapter(folder)
    if lacking == "settings":
        (folder / "adapter_config.json").unlink()
    if lacking == "weights":
        (folder / "adapter_model.safetensors").unlink()
    if lacking == "sense":
        (folder / "adapter_config.json").write_text("{")
    with pytest.raises(InputDataError, match=r"needs adapter_config\.json and \*\.safetensors"):
        content_hash(str(folder))


def test_folders_are_absolute_and_the_settings_go_before_the_composed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    for name in ("one", "two"):
        write_adapter(tmp_path / "shared" / "adapters" / name)
    write_state(tmp_path / "home", StackState(artifacts=tmp_path / "shared"))
    given = {"layers": {"adapters": {"folders": {"two": "mine/two", "three": "/three"}}}}
    composed = tmp_path / "shared" / "adapters"
    assert adapter_folders(Config.model_validate(given)) == {
        "one": str(composed / "one"),
        "two": str(tmp_path / "mine" / "two"),
        "three": "/three",
    }
    elsewhere = Config.model_validate({**given, "targets": []})
    assert set(adapter_folders(elsewhere)) == {"two", "three"}
