"""Fixtures that rooms share: the embedded Redis and model host, one of each for a whole run."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from hypothesis import settings
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from warmup_lib import stack

# No test is timed: how long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A fresh Debian has no compiler: what wants one fails here too.
os.environ["CXX"] = "no-compiler"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, for tests marked `realdata`; a user's clone has none."""
    folder = os.environ.get("WARMUP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("WARMUP_DATA does not name the real data")
    return Path(folder)


@pytest.fixture(scope="session")
def stack_artifacts() -> Path:
    """Where the stack's programs and model lie: set up once, shared by all homes of all runs."""
    return Path(os.environ.get("WARMUP_HOME") or Path(__file__).parents[1] / ".stack")


@pytest.fixture(scope="session")
def stack_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """This run's own home of the stack; what was started in it stops with the run."""
    home = tmp_path_factory.mktemp("stack")
    yield home
    stack.down(home)


@pytest.fixture(scope="session")
def stack_redis(stack_home: Path, stack_artifacts: Path) -> stack.StackState:
    """A running Redis. Tests share it: each uses keys of its own."""
    return stack.up(stack_home, model_host=False, progress=print, artifacts=stack_artifacts)


@pytest.fixture(scope="session")
def stack_host(stack_home: Path, stack_artifacts: Path) -> stack.StackState:
    """A running Redis and model host. Tests share them: each uses a `cache_salt` of its own."""
    state = stack.up(stack_home, progress=print, artifacts=stack_artifacts)
    assert state.hosts, state.skipped
    return state


@pytest.fixture(scope="session")
def plain_url(
    stack_redis: stack.StackState, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A Redis without the search module."""
    assert stack_redis.redis is not None
    server = psutil.Process(stack_redis.redis.pid).exe()
    folder = tmp_path_factory.mktemp("plain")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server_settings = {"port": str(port), "bind": "127.0.0.1", "save": "", "dir": str(folder)}
    argv = [server, *(part for k, v in server_settings.items() for part in (f"--{k}", v))]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        with redis.Redis("127.0.0.1", port, retry=Retry(ConstantBackoff(0.05), 100)) as client:
            client.ping()
        yield f"redis://127.0.0.1:{port}/0"
        process.terminate()


@pytest.fixture(scope="session")
def two_hosts(
    tmp_path_factory: pytest.TempPathFactory, stack_artifacts: Path
) -> Iterator[stack.StackState]:
    """A running Redis and two model hosts in a home of their own, for tests marked `slow`."""
    home = tmp_path_factory.mktemp("two-hosts")
    state = stack.up(home, hosts=2, progress=print, artifacts=stack_artifacts)
    assert len(state.hosts) == 2, state.skipped
    yield state
    stack.down(home)
