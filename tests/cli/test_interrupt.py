"""A command that is stopped by Ctrl-C says so in one line, wherever it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner

from warmup_lib import pipeline
from warmup_lib.cli import main

FOREVER = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range % 7 = b.range % 5"


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    own = {"WARMUP_HOME": str(home), "WARMUP_SECRET": "s" * 32}
    return subprocess.Popen(
        [sys.executable, "-m", "warmup_lib.cli", *arguments, "--lake", str(home / "lake")],
        env=os.environ | own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in its background deaf to Ctrl-C, and so all that that starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("Query interrupted")], ids=["python", "duckdb"]
)
def test_a_stage_ends_with_one_line_and_one_object(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def explain(*_: Any, **__: Any) -> NoReturn:
        raise error

    monkeypatch.setattr(pipeline, "explain", explain)
    for more in ([], ["--json"]):
        done = CliRunner().invoke(main, ["explain", "--plan", "p", "--day", "2026-03-17", *more])
        assert (done.exit_code, done.stderr) == (130, "interrupted\n")
        told = {"error": "interrupted", "kind": "KeyboardInterrupt"}
        assert done.stdout == (json.dumps(told) + "\n" if more else "")


def test_another_error_of_a_library_is_no_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("a secret text")

    monkeypatch.setattr(pipeline, "explain", explain)
    done = CliRunner().invoke(main, ["explain", "--plan", "p", "--day", "2026-03-17"])
    assert done.exit_code == 2
    assert "RuntimeError: this is a bug" in done.stderr
    assert "secret" not in done.output


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_query_that_is_running_and_what_was_answered_before_stays(
    tmp_path: Path, seconds: float
) -> None:
    with start(tmp_path, "sql") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"SELECT 'answered' AS first;\n{FOREVER};\n")
            process.stdin.close()
            process.stdin = None
            while "answered" not in process.stdout.readline():
                assert process.poll() is None
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (130, "interrupted\n")
        finally:
            process.kill()
