"""Memory does not grow with the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

CODE = """
import resource, sys
from pathlib import Path
from warmup_lib.config import Config
from warmup_lib.ingest import store
from warmup_lib.ingest.stage import run
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import silent
store.BUFFERED_BYTES = 4 * 1024 * 1024
lake, file = sys.argv[1:]
report = run(Lake(lake), [Path(file)], "jsonl", Config(lake=lake), Keys(b"x" * 16), silent)
print(report.facts["rows_kept"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(tmp_path: Path, rows: int, canonical: Any) -> int:
    """Ingest `rows` rows in a process of its own; return its peak memory in KiB."""
    file, lake = tmp_path / f"{rows}.jsonl", tmp_path / f"lake-{rows}"
    with file.open("wb") as out:
        for n in range(rows):
            at = 1_772_323_200 + n * 1_000_000 // rows
            out.write(
                orjson.dumps(canonical(n, ts=at, response=f"answer {n}: " + "as said " * 300))
                + b"\n"
            )
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(lake), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    kept, peak_kib = map(int, done.stdout.split())
    assert kept == rows
    return peak_kib


@pytest.mark.slow
def test_eight_times_the_rows_take_no_more_memory(tmp_path: Path, canonical: Any) -> None:
    small, large = peak(tmp_path, 5_000, canonical), peak(tmp_path, 40_000, canonical)
    assert (tmp_path / "40000.jsonl").stat().st_size > 100 * 10**6
    assert large - small < 32 * 1024
