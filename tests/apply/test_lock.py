"""A lock keeps one writer at a time, and a killed owner never keeps the next one out."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from warmup_lib.apply.lock import LakeLock, Locked, Owner
from warmup_lib.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(f"file://{tmp_path}")


def file(tmp_path: Path) -> Path:
    return tmp_path / "_locks" / "target-a.json"


def plant(tmp_path: Path, owner: Owner | bytes) -> None:
    file(tmp_path).parent.mkdir(exist_ok=True)
    body = owner if isinstance(owner, bytes) else json.dumps(asdict(owner)).encode()
    file(tmp_path).write_bytes(body)


def me(**changes: object) -> Owner:
    now = time.time()
    known = {
        "token": "t",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "expires": now + 60,
    }
    return Owner(**{**known, **changes})  # type: ignore[arg-type]


async def enter(lake: Lake, wait_s: float = 0.0) -> None:
    async with LakeLock(lake, "target-a", wait_s):
        pass


def test_a_held_lock_names_its_owner_and_is_free_afterwards(lake: Lake, tmp_path: Path) -> None:
    async def both() -> None:
        async with LakeLock(lake, "target-a"):
            with pytest.raises(Locked, match=f"target-a is in use by process {os.getpid()} on"):
                await enter(lake)
            await asyncio.gather(*[LakeLock(lake, f"target-{n}").__aenter__() for n in "bc"])
        await enter(lake)

    asyncio.run(both())
    assert not file(tmp_path).exists()


def test_waiting_gets_the_lock_once_it_is_released(lake: Lake) -> None:
    order: list[str] = []

    async def hold() -> None:
        async with LakeLock(lake, "target-a"):
            await asyncio.sleep(0.1)
            order.append("first")

    async def wait() -> None:
        await asyncio.sleep(0.02)
        async with LakeLock(lake, "target-a", wait_s=5):
            order.append("second")

    async def both() -> None:
        await asyncio.gather(hold(), wait())

    asyncio.run(both())
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    "stale",
    [
        {"expires": time.time() - 1, "host": "elsewhere"},
        {"started": 1.0},
        {"pid": 2**22 + 1},
    ],
    ids=["expired", "another process under this pid", "no such process"],
)
def test_a_stale_lock_is_taken_over(lake: Lake, tmp_path: Path, stale: dict[str, object]) -> None:
    plant(tmp_path, me(**stale))
    asyncio.run(enter(lake))


def test_an_unexpired_lock_of_another_machine_is_respected(lake: Lake, tmp_path: Path) -> None:
    plant(tmp_path, me(host="elsewhere", pid=1))
    with pytest.raises(Locked, match="process 1 on elsewhere"):
        asyncio.run(enter(lake))


def test_a_lock_cut_off_while_it_was_written_is_taken_over(lake: Lake, tmp_path: Path) -> None:
    plant(tmp_path, b'{"token": "t", "ho')
    asyncio.run(enter(lake))


def test_the_lock_of_a_killed_process_is_taken_over_at_once(lake: Lake, tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from warmup_lib.apply.lock import LakeLock\n"
        "from warmup_lib.lake import Lake\n"
        "async def hold():\n"
        "    async with LakeLock(Lake(sys.argv[1]), 'target-a'):\n"
        "        print('held', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(hold())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, f"file://{tmp_path}"], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Locked, match=str(holder.pid)):
            asyncio.run(enter(lake))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        begun = time.monotonic()
        asyncio.run(enter(lake))
    assert time.monotonic() - begun < 1


def test_the_one_whose_lock_was_taken_over_does_not_release_the_new_one(
    lake: Lake, tmp_path: Path
) -> None:
    async def lose() -> None:
        async with LakeLock(lake, "target-a"):
            plant(tmp_path, me(token="other"))

    asyncio.run(lose())
    assert file(tmp_path).exists()
