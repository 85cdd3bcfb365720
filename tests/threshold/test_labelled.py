"""A user's file of pairs or labels, and what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.threshold.labelled import read_pairs

KEYS = Keys(b"a secret for these tests")


def encode(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array([[1.0, 0.0] if "card" in text else [0.8, 0.6] for text in texts], np.float32)
    return rows, np.array([bool(text) for text in texts])


def read(path: Path, *rows: Any) -> Any:
    file = path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_pairs(file, KEYS, encode)


def test_pairs_as_they_are_with_the_guard_applied_first(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"a": "my card", "b": "my phone", "same": False},
        {"b": "my card", "a": "my phone", "same": False},
        {"a": "pay 20", "b": "pay 50", "same": False},
        {"a": "pay 20", "b": "pay 20 please", "same": True, "tenant": "acme"},
        {"a": "My card", "b": "my card", "same": True},
        {"a": "turn it on", "b": "turn it off", "same": True},
    )
    assert [(p.tenant, round(p.similarity, 3), p.wrong) for p in found.pairs] == [
        ("*", 0.8, True),
        ("acme", 1.0, False),
    ]
    assert (found.refused, found.refused_wrong) == (2, 1)
    assert found.texts[KEYS.text_digest("my phone")] == "my phone"


def test_labels_are_paired_with_their_nearest(tmp_path: Path) -> None:
    rows = [("my card", "lost"), ("the card", "lost"), ("my phone", "stolen")]
    found = read(tmp_path, *({"text": t, "label": label} for t, label in rows))
    assert sorted(p.wrong for p in found.pairs) == [False, True]
    assert {p.tenant for p in found.pairs} == {"*"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"a": "x", "b": "y"}], "line 1: neither"),
        ([{"a": "x", "b": "y", "same": 1}], "line 1: neither"),
        (["a secret text"], "line 1: neither"),
        ([{"a": "x", "b": "y", "same": True, "tenant": 7}], "line 1: `tenant`"),
        ([{"a": "x", "b": "y", "same": True}, {"text": "t", "label": "l"}], "line 2: pairs and"),
        ([], "holds no pairs"),
    ],
)
def test_a_file_that_is_of_neither_form_is_refused(
    tmp_path: Path, rows: list[Any], said: str
) -> None:
    with pytest.raises(InputDataError, match=said) as caught:
        read(tmp_path, *rows)
    assert "secret text" not in str(caught.value)


def test_what_is_no_json_is_refused_without_quoting_it(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"a": "a secret text"', encoding="utf-8")
    with pytest.raises(InputDataError, match="not JSON lines") as caught:
        read_pairs(file, KEYS, encode)
    assert "secret text" not in str(caught.value)
    with pytest.raises(InputDataError, match="can't read"):
        read_pairs(tmp_path / "absent", KEYS, encode)
