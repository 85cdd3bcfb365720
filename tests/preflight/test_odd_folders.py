"""No content of a model folder ends a check, and so none ends an apply."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.preflight.building import TINY, header_of, healthy, llama
from warmup_lib.layers.weights import _checked
from warmup_lib.preflight.check import check_model
from warmup_lib.targets.models import Served

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["..", "/etc/passwd", "model.safetensors", "F32", "F4"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
SPOILT = ("architectures", "model_type", "dtype", "quantization_config", "tie_word_embeddings")
CONFIGS = st.dictionaries(st.sampled_from([*TINY, *SPOILT, "head_dim"]), JSON, max_size=3)
ENTRIES = st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets"]), JSON, max_size=2)


@settings(max_examples=150, deadline=None)
@given(config=CONFIGS, entry=ENTRIES, name=st.text(st.characters()), index=st.none() | JSON)
def test_whatever_json_says_is_checked_and_told(
    tmp_path_factory: pytest.TempPathFactory, config: Any, entry: Any, name: str, index: Any
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "config.json").write_text(json.dumps(TINY | config))
    header = header_of(llama())
    header[name] = header["model.norm.weight"] | entry
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(11_936))
    if index is not None:
        weight_map = index if isinstance(index, dict) else {"a": index}
        text = json.dumps({"weight_map": weight_map})
        (folder / "model.safetensors.index.json").write_text(text)
    checked = check_model(folder)
    assert checked.errors  # one tensor lies where another does, at the least
    for finding in checked.findings:
        assert str(finding).encode().decode().isprintable()


@pytest.mark.parametrize("kind", [OSError, RecursionError, MemoryError])
def test_a_check_that_breaks_does_not_end_an_apply(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[Exception],
) -> None:
    healthy(tmp_path)
    served = Served(root=str(tmp_path), context=None)
    assert getattr(_checked(served), "tensor_bytes", None) == 11_936

    def breaks(_: Path) -> None:
        raise kind("a name of the folder")

    monkeypatch.setattr("warmup_lib.preflight.check.check_model", breaks)
    with caplog.at_level(logging.WARNING):
        assert _checked(served) is None
    assert f"could not be checked: {kind.__name__}" in caplog.text
    assert "a name of the folder" not in caplog.text
