from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from click.testing import CliRunner

from samples.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_prints_what_it_wrote(tmp_path: Path) -> None:
    out = tmp_path / "log"
    result = CliRunner().invoke(main, ["--out", str(out), "--days", "2", "--scale", "0.005"])
    assert result.exit_code == 0, result.output
    said = json.loads(result.output)
    assert said["composed"] is True
    assert len(said["rows_by_day"]) == len(list(out.glob("requests-*.jsonl.gz"))) == 2


def test_the_folder_source_needs_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARMUP_DATA", raising=False)
    result = CliRunner().invoke(main, ["--out", str(tmp_path), "--source", "folder"])
    assert result.exit_code == 2
    assert "--data DIR" in result.output


def test_it_knows_nothing_of_the_planner_and_loads_nothing_heavy() -> None:
    code = "import sys, samples.__main__; print(*{name.split('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(found.stdout.split())
    assert "samples" in loaded
    assert not loaded & {"warmup_lib", "pandas", "scipy", "torch", "pyarrow"}
