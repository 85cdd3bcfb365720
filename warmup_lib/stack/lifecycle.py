"""Brings the embedded stack up, tells what of it runs, and takes it down."""

from __future__ import annotations

import time
from pathlib import Path

from warmup_lib.errors import HostUnavailable, StoreUnavailable, TargetUnavailable
from warmup_lib.stack import process, servers
from warmup_lib.stack.artifacts import adapters_in, host_files, redis_files, workshop
from warmup_lib.stack.process import Launch
from warmup_lib.stack.state import (
    Progress,
    Service,
    StackState,
    exclusive,
    read_state,
    write_state,
)

_ANSWERS = {"redis": servers.redis_version, "vllm": servers.vllm_version}
_UNAVAILABLE = {"redis": StoreUnavailable, "vllm": HostUnavailable}
_START_SECONDS = {"redis": 30.0, "vllm": 600.0}
_REUSE_SECONDS = 30.0


def up(
    home: Path,
    *,
    hosts: int = 1,
    model_host: bool = True,
    progress: Progress,
    artifacts: Path | None = None,
) -> StackState:
    """Start what of the stack does not run, setting it up first where that was never done.

    What already runs and answers is kept. A model host that can't be had on this machine is
    left out, and the state says so in a sentence; Redis alone is then up.

    Args:
        home: Folder of the stack: state, logs and, unless `artifacts` says otherwise, programs.
        hosts: Model hosts to have at least. Several share the cores, so running ones are started
            anew where their number grows.
        model_host: False for Redis alone; model hosts that run are left as they are.
        progress: Takes a line at the begin and end of each phase, and while a server starts.
        artifacts: Folder of the programs and the model, to share them between several homes.

    Raises:
        StoreUnavailable: Redis could not be fetched or started.
        HostUnavailable: A model host was installed and did not start; names its log.
    """
    home = home.resolve()
    parts = (artifacts or home).resolve()
    with exclusive(home / "up.lock", progress):
        stack = _Stack(home, read_state(home).model_copy(update={"artifacts": parts}), progress)
        with workshop(parts, process.log_file(home, "setup"), progress) as shop:
            redis = redis_files(shop)
        stack.ensure([servers.redis_launch(redis)])
        if model_host:
            _ensure_hosts(stack, hosts, parts)
        elif not stack.state.hosts:
            stack.skip("The model host was not asked for.")
        return stack.state


def status(home: Path) -> StackState:
    """Return what of the stack runs now.

    A service counts by its process, not by its answer: a busy host is still there.
    """
    home = home.resolve()
    return _running(home, read_state(home))


def adapter_folders(home: Path) -> dict[str, Path]:
    """Return the folders of the composed adapters by name; none before a first `up` with a host."""
    home = home.resolve()
    return adapters_in(read_state(home).artifacts or home)


def down(home: Path) -> list[int]:
    """Stop everything the stack started and return the pids that were stopped, ascending.

    Safe to repeat. Only processes that `up` started in this home are touched, whatever the state
    file says; those that it no longer names are found too.
    """
    home = home.resolve()
    if not (home / "run").is_dir():
        return []
    with exclusive(home / "up.lock", lambda _line: None):
        state = read_state(home)
        recorded = state.services
        stopped = []
        for folder in (home / "run").iterdir():
            service = recorded.get(folder.name)
            stopped += process.stop(home, folder.name, service.pid if service else None)
        write_state(home, StackState(artifacts=state.artifacts))
    return sorted(stopped)


def _running(home: Path, state: StackState) -> StackState:
    def alive(service: Service) -> bool:
        return service.pid in process.leaders(home, service.name)

    return StackState(
        redis=state.redis if state.redis and alive(state.redis) else None,
        hosts=[host for host in state.hosts if alive(host)],
        skipped=state.skipped,
        artifacts=state.artifacts,
    )


def _ensure_hosts(stack: _Stack, hosts: int, parts: Path) -> None:
    wanted = max(hosts, len(stack.last.hosts))
    log = process.log_file(stack.home, "setup")
    try:
        with workshop(parts, log, stack.progress) as shop:
            files = host_files(shop)
    except HostUnavailable as error:
        stack.skip(f"There is no model host: {error.reason}.")
        return
    if wanted > len(stack.last.hosts):
        stack.forget_hosts()
    stack.ensure([servers.vllm_launch(files, i, wanted, stack.home) for i in range(wanted)])


class _Stack:
    """One `up` at work: the state it found, the state it has reached and written."""

    def __init__(self, home: Path, last: StackState, progress: Progress) -> None:
        self.home = home
        self.last = last
        self.progress = progress
        self.state = _running(home, last).model_copy(update={"skipped": []})

    def ensure(self, launches: list[Launch]) -> None:
        """Have all of `launches` answer: those that do are kept, the others started together."""
        began = time.monotonic()
        services = [self._kept(launch) or self._start(launch) for launch in launches]
        # Before the wait: an `up` that is killed now leaves nothing that `down` does not know.
        self._record(services)
        for service in services:
            self._record([self._await(service, began)])

    def skip(self, reason: str) -> None:
        """Put down in a sentence what is left out."""
        self.state = self.state.model_copy(update={"skipped": [reason]})
        write_state(self.home, self.state)

    def forget_hosts(self) -> None:
        """Have running hosts started anew, because they hold more cores than their new share."""
        self.state = self.state.model_copy(update={"hosts": []})

    def _kept(self, launch: Launch) -> Service | None:
        service = self.state.services.get(launch.name)
        if service is None or not service.version:  # the latter: an `up` was killed at its start
            return service
        if process.older_than(service.pid, launch.made):
            self.progress(f"{service.name}: runs an older version, starting it anew")
            return None
        if self._answer(service, _REUSE_SECONDS) is None:
            self.progress(f"{service.name}: runs but does not answer, starting it anew")
            return None
        self.progress(f"{service.name}: already runs at {service.url}")
        return service

    def _start(self, launch: Launch) -> Service:
        before = self.last.services.get(launch.name)
        process.stop(self.home, launch.name, before.pid if before else None)
        try:
            pid = process.start(self.home, launch)
        except OSError as error:
            reason = f"{launch.argv[0]} can't run on this machine: {error.strerror}"
            raise _UNAVAILABLE[launch.kind](launch.name, reason) from None
        return Service(
            name=launch.name,
            kind=launch.kind,
            url=launch.url,
            pid=pid,
            version="",
            model=launch.model,
            log=process.log_file(self.home, launch.name),
        )

    def _await(self, service: Service, began: float) -> Service:
        if service.version:
            return service
        version = self._answer(service, _START_SECONDS[service.kind])
        if version is None:
            raise self._failure(service)
        seconds = time.monotonic() - began
        self.progress(f"{service.name}: version {version} at {service.url}, {seconds:.0f} s")
        return service.model_copy(update={"version": version})

    def _answer(self, service: Service, seconds: float) -> str | None:
        """Return the version once it serves; None after `seconds` or when its process has ended."""
        began = told = time.monotonic()
        while service.pid in process.leaders(self.home, service.name):
            if version := _ANSWERS[service.kind](service.url):
                return version
            now = time.monotonic()
            if now - began > seconds:
                return None
            if now - told > 10:
                told = now
                self.progress(f"{service.name}: not yet ready after {now - began:.0f} s")
            time.sleep(0.1 if service.kind == "redis" else 1)
        return None

    def _failure(self, service: Service) -> TargetUnavailable:
        alive = service.pid in process.leaders(self.home, service.name)
        what = "it was not ready in time" if alive else "it ended while starting"
        process.stop(self.home, service.name, service.pid)
        words = process.last_words(service.log)
        return _UNAVAILABLE[service.kind](service.name, f"{what}: {words} (log: {service.log})")

    def _record(self, services: list[Service]) -> None:
        known = {**self.state.services, **{s.name: s for s in services}}
        self.state = self.state.model_copy(
            update={
                "redis": known.get("redis"),
                "hosts": sorted(
                    (s for s in known.values() if s.kind == "vllm"), key=lambda s: s.name
                ),
            }
        )
        write_state(self.home, self.state)
