from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.stack import servers
from warmup_lib.stack.artifacts import HostFiles

if TYPE_CHECKING:
    import pytest


@given(cores=st.lists(st.integers(0, 300), min_size=1, unique=True), hosts=st.integers(1, 12))
def test_hosts_get_equal_shares_and_share_a_core_only_when_there_are_too_few(
    cores: list[int], hosts: int
) -> None:
    shares = [servers.core_share(cores, i, hosts) for i in range(hosts)]
    assert {len(s) for s in shares} == {max(1, len(cores) // hosts)}
    used = [core for share in shares for core in share]
    assert set(used) <= set(cores)
    if hosts <= len(cores):
        assert len(used) == len(set(used))


def test_one_host_has_all_cores_and_two_have_one_each_of_two() -> None:
    assert servers.core_share([0, 1], 0, 1) == [0, 1]
    assert [servers.core_share([0, 1], i, 2) for i in range(2)] == [[0], [1]]
    assert [servers.core_share([5], i, 2) for i in range(2)] == [[5], [5]]


def test_no_setting_of_the_callers_environment_reaches_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "not-ours")
    monkeypatch.setenv("OMP_NUM_THREADS", "99")
    files = HostFiles(python=tmp_path / "python", model=tmp_path / "model", made=0.0)
    pair = [servers.vllm_launch(files, i, 2, tmp_path) for i in range(2)]
    assert all("VLLM_API_KEY" not in launch.env for launch in pair)
    assert [launch.env["OMP_NUM_THREADS"] for launch in pair] == [
        str(len(launch.cores)) for launch in pair
    ]
    assert [launch.env["VLLM_CPU_KVCACHE_SPACE"] for launch in pair] == ["1", "1"]
    assert [launch.name for launch in pair] == ["vllm-1", "vllm-2"]
    assert pair[0].url != pair[1].url


def test_nothing_answers_where_nothing_listens() -> None:
    port = servers.free_port()
    assert servers.redis_version(f"redis://127.0.0.1:{port}/0") is None
    assert servers.vllm_version(f"http://127.0.0.1:{port}") is None
