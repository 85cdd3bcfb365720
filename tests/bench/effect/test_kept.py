from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.effect.kept import Kept


def test_a_part_that_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    first = Kept(file, "abc").part("a", lambda: {"value": 1})
    assert (first["value"], first["commit"]) == (1, "abc")

    def again() -> dict[str, Any]:
        raise AssertionError

    assert Kept(file, "def").part("a", again) == first


def test_a_part_that_broke_off_leaves_the_others(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "measured.json", "abc")
    kept.part("a", lambda: {"value": 1})

    def broken() -> dict[str, Any]:
        raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        kept.part("b", broken)
    assert list(Kept(tmp_path / "measured.json", "abc").parts) == ["a"]
