"""An Airflow of the tests' own: its home, its settings, its database, made once a session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AIRFLOW = [sys.executable, "-m", "airflow"]


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point Airflow at a home of its own. Request it before anything imports Airflow."""
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith(("AIRFLOW", "WARMUP_CONFIG"))]:
            patch.delenv(name)
        patch.setenv("AIRFLOW_HOME", str(home))
        patch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(ROOT / "dags"))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        yield home


@pytest.fixture(scope="session")
def airflow_db(airflow_home: Path) -> Path:
    """Return a home whose database has its tables and our pools."""
    for command in (["db", "migrate"], ["pools", "import", str(ROOT / "deploy" / "pools.json")]):
        done = subprocess.run([*AIRFLOW, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return airflow_home
