from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warmup_lib.errors import ConfigError
from warmup_lib.stack.state import Service, StackState, exclusive, read_state, write_state

REDIS = Service(
    name="redis",
    kind="redis",
    url="redis://127.0.0.1:7000/0",
    pid=41,
    version="8.2.3",
    model=None,
    log=Path("/tmp/redis.log"),
)
HOST = Service(
    name="vllm-1",
    kind="vllm",
    url="http://127.0.0.1:7001",
    pid=42,
    version="0.32.0",
    model="smollm2-135m-instruct",
    log=Path("/tmp/vllm-1.log"),
)


def test_what_was_written_is_read_and_nothing_else_is_left(tmp_path: Path) -> None:
    state = StackState(redis=REDIS, hosts=[HOST], skipped=["There is no second host."])
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


def test_services_are_known_by_name() -> None:
    assert StackState(redis=REDIS, hosts=[HOST]).services == {"redis": REDIS, "vllm-1": HOST}
    assert StackState().services == {}


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b'{"redis": 3}', b'{"hosts": [{"pid": "x"}]}', b"\xff\x00"]
)
def test_a_missing_or_broken_file_counts_as_an_empty_one(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "state.json").write_bytes(content)
    assert read_state(tmp_path) == StackState()


HOLD = """
import sys
from pathlib import Path
from warmup_lib.stack.state import exclusive
with exclusive(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_waited_for_and_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    lock = tmp_path / "deep" / "up.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lines: list[str] = []

        def told(line: str) -> None:
            lines.append(line)
            holder.kill()

        with exclusive(lock, told):
            assert lines == [f"waiting for another process that holds {lock}"]
            assert holder.wait(10) == -9


def test_a_folder_that_cant_be_written_is_named_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match=r"file.* can't hold the embedded stack.*WARMUP_HOME"),
        exclusive(tmp_path / "file" / "up.lock", print),
    ):
        pytest.fail("the lock can't be had")


def test_a_free_lock_is_taken_without_a_word(tmp_path: Path) -> None:
    lines: list[str] = []
    for _ in range(2):
        with exclusive(tmp_path / "up.lock", lines.append):
            assert lines == []
