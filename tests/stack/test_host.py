from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from warmup_lib import stack
from warmup_lib.stack import servers

pytestmark = pytest.mark.host

QUESTION = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "What is the capital of France?"},
]
HEAD = "The shop sends parcels on working days and takes them back within thirty days. " * 12


@pytest.fixture
def host(stack_host: stack.StackState) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack_host.hosts[0].url, timeout=120, trust_env=False) as client:
        yield client


def ask(host: httpx.Client, messages: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    body = {
        "model": "smollm2-135m-instruct",
        "messages": messages,
        "max_tokens": 16,
        "temperature": 0,
    }
    answer: dict[str, Any] = (
        host.post("/v1/chat/completions", json=body | more).raise_for_status().json()
    )
    return answer


def cached(host: httpx.Client, salt: str, question: str) -> int:
    messages = [{"role": "system", "content": HEAD}, {"role": "user", "content": question}]
    usage = ask(host, messages, cache_salt=salt, max_tokens=1, priority=100)["usage"]
    return int(usage["prompt_tokens_details"]["cached_tokens"])


def metric(host: httpx.Client, name: str) -> str:
    [line] = [m for m in host.get("/metrics").text.splitlines() if m.startswith(name)]
    return line


def test_the_model_chats_through_its_template(host: httpx.Client) -> None:
    answer = ask(host, QUESTION)
    assert answer["choices"][0]["message"]["content"] == "The capital of France is Paris."
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_a_second_probe_finds_whole_blocks_of_the_head_under_its_own_salt_only(
    host: httpx.Client,
) -> None:
    salt = uuid.uuid4().hex
    assert cached(host, salt, "When is it sent?") == 0
    found = cached(host, salt, "May I return it?")
    assert found > 100
    assert found % 32 == 0
    assert cached(host, uuid.uuid4().hex, "May I return it?") == 0


def test_a_salt_that_the_contract_forbids_is_refused(host: httpx.Client) -> None:
    body = {"model": "smollm2-135m-instruct", "messages": QUESTION, "max_tokens": 1}
    for salt in ("a/b", "a@b", "x" * 129):
        assert (
            host.post("/v1/chat/completions", json=body | {"cache_salt": salt}).status_code == 400
        )


def test_tokenize_and_render_give_the_same_ids_as_the_prompt_has_tokens(host: httpx.Client) -> None:
    body = {"model": "smollm2-135m-instruct", "messages": QUESTION}
    ids = host.post("/tokenize", json=body).raise_for_status().json()["tokens"]
    rendered = host.post("/v1/chat/completions/render", json=body).raise_for_status().json()
    assert rendered["token_ids"] == ids
    assert ask(host, QUESTION)["usage"]["prompt_tokens"] == len(ids)


def test_metrics_tell_capacity_and_the_start_by_which_a_restart_is_seen(
    host: httpx.Client, stack_host: stack.StackState
) -> None:
    config = metric(host, "vllm:cache_config_info")
    assert 'block_size="32"' in config
    assert 'num_gpu_blocks="2912"' in config
    assert 'enable_prefix_caching="True"' in config
    started = float(metric(host, "process_start_time_seconds ").split()[1])
    assert started == pytest.approx(psutil.Process(stack_host.hosts[0].pid).create_time(), abs=2)


def zero_adapter(folder: Path) -> Path:
    """Write a LoRA that changes nothing."""
    import torch
    from safetensors.torch import save_file

    hidden, rank, layers = 576, 4, 30
    weights = {}
    for layer in range(layers):
        part = f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_"
        weights[f"{part}A.weight"] = torch.ones(rank, hidden, dtype=torch.bfloat16)
        weights[f"{part}B.weight"] = torch.zeros(hidden, rank, dtype=torch.bfloat16)
    save_file(weights, folder / "adapter_model.safetensors")
    about = {"peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(about))
    return folder


def test_an_adapter_is_loaded_used_and_unloaded_at_run_time(
    host: httpx.Client, tmp_path: Path
) -> None:
    adapter = {"lora_name": "nothing-1", "lora_path": str(zero_adapter(tmp_path))}
    host.post("/v1/load_lora_adapter", json=adapter).raise_for_status()
    try:
        assert {m["id"] for m in host.get("/v1/models").json()["data"]} == {
            "smollm2-135m-instruct",
            "nothing-1",
        }
        answer = ask(host, QUESTION, model="nothing-1")["choices"][0]["message"]["content"]
        assert answer == "The capital of France is Paris."
    finally:
        host.post("/v1/unload_lora_adapter", json={"lora_name": "nothing-1"}).raise_for_status()
    assert [m["id"] for m in host.get("/v1/models").json()["data"]] == ["smollm2-135m-instruct"]


def test_the_host_listens_on_loopback_only(stack_host: stack.StackState) -> None:
    pid = stack_host.hosts[0].pid
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    listening = [
        c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == "LISTEN"
    ]
    assert set(listening) == {"127.0.0.1"}


def test_a_second_up_keeps_the_host(
    stack_host: stack.StackState, stack_home: Path, stack_artifacts: Path
) -> None:
    told: list[str] = []
    again = stack.up(stack_home, progress=told.append, artifacts=stack_artifacts)
    assert again == stack_host
    assert [line.split(" at ")[0] for line in told] == [
        "redis: already runs",
        "vllm-1: already runs",
    ]


def living(session: int) -> set[int]:
    """The processes of a session that are not waiting to be reaped."""
    found = set()
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
    return found


@pytest.mark.slow
def test_two_hosts_share_the_cores_come_back_one_by_one_and_go_with_their_engines(
    tmp_path: Path, stack_artifacts: Path
) -> None:
    home = tmp_path / "home"
    try:
        first, second = stack.up(home, hosts=2, progress=print, artifacts=stack_artifacts).hosts
        assert [first.name, second.name] == ["vllm-1", "vllm-2"]
        shares = [os.sched_getaffinity(h.pid) for h in (first, second)]
        assert shares == [
            set(servers.core_share(sorted(os.sched_getaffinity(0)), i, 2)) for i in range(2)
        ]
        assert len(living(first.pid)) >= 3
        os.kill(first.pid, signal.SIGKILL)

        after = stack.up(home, hosts=1, progress=print, artifacts=stack_artifacts)
        assert after.hosts[1] == second
        assert after.hosts[0].pid != first.pid
        assert living(first.pid) == set()

        stopped = stack.down(home)
        assert {h.pid for h in after.hosts} < set(stopped)
        assert not any(living(h.pid) for h in after.hosts)
        assert stack.down(home) == []
    finally:
        stack.down(home)
