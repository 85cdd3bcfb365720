from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from warmup_lib.stack import process
from warmup_lib.stack.process import Launch


def launch(*argv: str) -> Launch:
    return Launch(
        name="thing",
        kind="redis",
        url="redis://127.0.0.1:1/0",
        argv=list(argv),
        env=dict(os.environ),
        cores=sorted(os.sched_getaffinity(0))[:1],
        made=0.0,
    )


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    process.stop(tmp_path, "thing", None)


@contextmanager
def stranger(*argv: str, cwd: Path, stdin: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a session and that the stack did not start."""
    with subprocess.Popen(
        argv, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def until(true: object, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_started_process_leads_its_session_on_its_cores_and_stops_once(home: Path) -> None:
    pid = process.start(home, launch("sleep", "60"))
    assert process.leaders(home, "thing") == [pid]
    assert process.leaders(home, "other") == []
    assert os.getsid(pid) == pid != os.getsid(0)
    assert os.sched_getaffinity(pid) == set(launch().cores)
    assert process.stop(home, "thing", pid) == [pid]
    assert process.leaders(home, "thing") == []
    assert not psutil.pid_exists(pid)
    assert process.stop(home, "thing", pid) == []


def test_output_goes_to_the_log_and_the_run_before_is_kept_beside_it(home: Path) -> None:
    log = process.log_file(home, "thing")
    for word in ("first", "second", "third"):
        process.start(home, launch("sh", "-c", f"echo {word}"))
        until(lambda w=word: log.read_text() == f"{w}\n")
        until(lambda: not process.leaders(home, "thing"))
    assert log.with_suffix(".previous.log").read_text() == "second\n"


def runs(pid: int) -> bool:
    """Whether it lives; what waits to be reaped by init does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(home: Path) -> tuple[int, list[int]]:
    """A leader with two children."""
    pid = process.start(home, launch("sh", "-c", "sleep 60 & sleep 60 & wait"))
    until(lambda: len(psutil.Process(pid).children()) == 2)
    return pid, [p.pid for p in psutil.Process(pid).children()]


def test_a_process_is_older_than_files_that_were_made_after_its_start(home: Path) -> None:
    pid = process.start(home, launch("sleep", "60"))
    now = time.time()
    assert process.older_than(pid, now + 30)
    assert not process.older_than(pid, now)
    process.stop(home, "thing", pid)
    assert not process.older_than(pid, now + 30)


def test_children_stop_with_their_leader(home: Path) -> None:
    pid, children = family(home)
    assert process.stop(home, "thing", pid) == sorted([pid, *children])
    assert not any(runs(child) for child in children)


def test_orphans_of_a_killed_leader_are_stopped(home: Path) -> None:
    pid, children = family(home)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not process.leaders(home, "thing"))
    assert process.stop(home, "thing", pid) == sorted(children)


def test_a_process_that_ignores_the_request_is_killed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(process, "ORPHAN_SECONDS", 0.1)
    pid = process.start(
        home, launch("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
    )
    until(lambda: "deaf" in process.log_file(home, "thing").read_text())
    assert pid in process.stop(home, "thing", pid)
    assert process.leaders(home, "thing") == []


def test_a_stranger_with_the_recorded_pid_is_left_alone(home: Path, tmp_path: Path) -> None:
    (home / "run" / "thing").mkdir(parents=True)
    with stranger("sleep", "60", cwd=tmp_path) as other:
        assert process.leaders(home, "thing") == []
        assert process.stop(home, "thing", other.pid) == []
        assert other.poll() is None


ON_A_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_shell_that_somebody_opened_in_the_folder_is_left_alone(home: Path) -> None:
    folder = home / "run" / "thing"
    folder.mkdir(parents=True)
    ours, theirs = pty.openpty()
    with stranger(sys.executable, "-c", ON_A_TERMINAL, cwd=folder, stdin=theirs) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == b"ready\n"
        assert process.leaders(home, "thing") == []
        assert process.stop(home, "thing", None) == []
        assert shell.poll() is None
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (
            "INFO starting\n"
            "(Worker pid=9) ERROR [x.py:1] FileNotFoundError: no such model\n"
            "Exception: start failed. See stack trace for root cause.\n"
            "RuntimeError: Engine core initialization failed. See root cause above.\n"
            "INFO bye\n",
            "(Worker pid=9) ERROR [x.py:1] FileNotFoundError: no such model",
        ),
        ("Looking in indexes\nERROR: No matching distribution found\n\n", "ERROR: No matching "),
        ("one\nCan't load module, server aborting\n", "Can't load module, server aborting"),
        ("", "the log is empty"),
    ],
)
def test_last_words_tell_the_cause(tmp_path: Path, log: str, line: str) -> None:
    file = tmp_path / "x.log"
    file.write_text(log)
    assert process.last_words(file).startswith(line)


def test_last_words_of_a_log_that_was_never_written(tmp_path: Path) -> None:
    assert process.last_words(tmp_path / "none.log") == "the log is empty"


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may name one free port twice before anything listens on it."""

    class Repeating(socket.socket):
        names = iter([("127.0.0.1", 4711)] * 3 + [("127.0.0.1", 4712)])

        def getsockname(self) -> tuple[str, int]:
            return next(self.names)

    monkeypatch.setattr(process.socket, "socket", Repeating)
    assert [process.free_port(), process.free_port()] == [4711, 4712]
