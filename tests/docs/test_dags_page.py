from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_dags_is_current() -> None:
    script = ROOT / "docs" / "build_dags.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_dag_has_its_section() -> None:
    page = (ROOT / "docs" / "dags.md").read_text(encoding="utf-8")
    for file in (ROOT / "dags").glob("*.py"):
        assert f"\n## `{file.stem}`\n" in page
