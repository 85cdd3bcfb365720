"""Processes of the embedded stack: start one detached, know it again, stop it with its children.

A process is ours when it leads a session without a terminal in the folder that was made for it
(`<home>/run/<name>`). A pid alone proves nothing: it may have been given to a stranger since.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from warmup_lib.stack.state import ServiceKind

GRACE_SECONDS = 20.0
"""How long a server may take to end by itself; vLLM was seen to need 3 s."""

ORPHAN_SECONDS = 5.0
"""The same for the processes that a server left behind."""

# Held so that a long-lived caller (a test run) gets neither warnings about running children nor
# zombies: poll() reaps those that have ended.
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Launch:
    """A server to start.

    Attributes:
        name: Of the service; also of its folder and log.
        kind: What it is.
        url: Where it will listen.
        argv: Program and arguments.
        env: The whole environment.
        cores: CPU cores it may run on.
        made: When its files were made, in seconds since the epoch.
        model: The model's name it will serve.
    """

    name: str
    kind: ServiceKind
    url: str
    argv: list[str]
    env: dict[str, str]
    cores: list[int]
    made: float
    model: str | None = None


def log_file(home: Path, name: str) -> Path:
    """Return where a service's (or the set-up's) output goes."""
    return home / "logs" / f"{name}.log"


_PORTS_GIVEN: set[int] = set()


def free_port() -> int:
    """Return a loopback port that nothing listens on, and that was not returned before.

    Two servers that start at the same time may be given one port by the kernel, and vLLM shares a
    port instead of failing: both would then answer under one address.
    """
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _PORTS_GIVEN:
            _PORTS_GIVEN.add(port)
            return port


def start(home: Path, launch: Launch) -> int:
    """Start a server that outlives this process and return its pid.

    Raises:
        OSError: The program can't be executed on this machine.
    """
    folder = _folder(home, launch.name)
    folder.mkdir(parents=True, exist_ok=True)
    log = log_file(home, launch.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".previous.log"))
    with log.open("wb") as output:
        child = subprocess.Popen(
            launch.argv,
            cwd=folder,
            env=launch.env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children.append(child)
    # Set before the server makes threads: each of them inherits it.
    with suppress(ProcessLookupError):
        os.sched_setaffinity(child.pid, launch.cores)
    return child.pid


def leaders(home: Path, name: str) -> list[int]:
    """Return the pids of the live processes that `start` made for this service: none or one.

    Two can only be seen after a machine's clock or pids were tampered with; both are then ours.
    """
    for child in _children:
        child.poll()
    return [p.pid for p in _in_folder(home, name) if _session(p.pid) == (p.pid, 0)]


def older_than(pid: int, made: float) -> bool:
    """Tell whether a process began before its files were made: it then runs something else.

    A start time is known to about a second, hence the margin.
    """
    try:
        return bool(psutil.Process(pid).create_time() < made - 5)
    except psutil.NoSuchProcess:
        return False


def stop(home: Path, name: str, recorded: int | None) -> list[int]:
    """Stop a service and everything it started: asked first, killed after `GRACE_SECONDS`.

    Args:
        home: The stack's home.
        name: The service.
        recorded: The pid it was started as, by which children are found whose leader has died.

    Returns:
        The pids that were stopped, ascending.
    """
    heads = leaders(home, name)
    sessions = {*heads, recorded}

    def all_of_it() -> list[psutil.Process]:
        return _members(home, name, sessions)

    def its_leaders() -> list[psutil.Process]:
        return [p for p in all_of_it() if p.pid in heads]

    stopped = sorted(p.pid for p in all_of_it())
    # A leader ends its children in good order. Orphans, and what it leaves, are asked one by one.
    _end(its_leaders, signal.SIGTERM, GRACE_SECONDS)
    _end(all_of_it, signal.SIGTERM, ORPHAN_SECONDS)
    _end(all_of_it, signal.SIGKILL, GRACE_SECONDS)
    for child in _children:
        child.poll()
    return stopped


def last_words(log: Path) -> str:
    """Return the line of a log that tells best why the program ended.

    That is the last exception which does not merely point to another one, else the last line that
    speaks of an error, else the last line.
    """
    lines = [line.strip() for line in _tail(log).splitlines() if line.strip()]
    for pattern in (r"\b\w*(Error|Exception): (?!.*root cause)", r"(?i)\berror\b", r""):
        for line in reversed(lines):
            if re.search(pattern, line):
                return line[:400]
    return "the log is empty"


def _tail(log: Path, size: int = 65_536) -> str:
    if not log.exists():
        return ""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - size))
        return stream.read().decode("utf-8", errors="replace")


def _folder(home: Path, name: str) -> Path:
    return home / "run" / name


def _in_folder(home: Path, name: str) -> list[psutil.Process]:
    folder = str(_folder(home, name))
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == folder:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # ended meanwhile, a zombie, or another user's
    return found


def _members(home: Path, name: str, sessions: set[int | None]) -> list[psutil.Process]:
    in_folder = [(p, _session(p.pid)) for p in _in_folder(home, name)]
    return [p for p, session in in_folder if session and session[0] in sessions]


def _end(which: Callable[[], list[psutil.Process]], number: signal.Signals, seconds: float) -> None:
    """Send a signal and wait until none of `which` is left."""
    deadline = time.monotonic() + seconds
    for process in which():
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    while which() and time.monotonic() < deadline:
        time.sleep(0.05)


def _session(pid: int) -> tuple[int, int] | None:
    """Return a process's session and terminal (0: none, as a server has), None when it is gone.

    Read from the kernel because psutil remembers the terminals that existed when it first looked.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    _state, _parent, _group, session, terminal = stat.rpartition(")")[2].split()[:5]
    return int(session), int(terminal)
