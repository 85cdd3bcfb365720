"""How each server of the embedded stack is started and how one sees that it serves."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import redis

from warmup_lib.stack.adapters import MODULES, RANK
from warmup_lib.stack.artifacts import HostFiles, RedisFiles
from warmup_lib.stack.process import Launch, free_port

MODEL_NAME = "smollm2-135m-instruct"
MAX_LORAS = 4
"""Adapter slots of a host that a plan may fill.

It has one more: once the last slot is filled, vLLM's CPU build answers requests for the base model
that share a batch with an adapter's under the last slot's adapter (vllm-project/vllm#48421).
"""

PATIENCE_SECONDS = 5.0
"""How long a Redis may take to answer one question."""


def redis_launch(files: RedisFiles) -> Launch:
    """Return how to start Redis: on loopback, in memory only, with search.

    It refuses writes when full (`noeviction`) instead of dropping entries: a plan counts bytes, and
    what was planned and written must not vanish behind the receipt's back.
    """
    port = free_port()
    settings = {
        "port": str(port),
        "bind": "127.0.0.1",
        "save": "",
        "maxmemory": "1gb",
        "maxmemory-policy": "noeviction",
        "loadmodule": str(files.search),
    }
    return Launch(
        name="redis",
        kind="redis",
        url=f"redis://127.0.0.1:{port}/0",
        argv=[str(files.server), *(part for k, v in settings.items() for part in (f"--{k}", v))],
        env=dict(os.environ),
        cores=sorted(os.sched_getaffinity(0)),
        made=files.made,
    )


def vllm_launch(files: HostFiles, index: int, hosts: int, home: Path) -> Launch:
    """Return how to start model host number `index` (from 0) of `hosts`.

    Several hosts share the machine by cores: with as many threads each as there are cores they were
    seen to take 5-6 s to a first token instead of 0.1 s.
    """
    port = free_port()
    cores = core_share(sorted(os.sched_getaffinity(0)), index, hosts)
    arguments = {
        "model": str(files.model),
        "served-model-name": MODEL_NAME,
        "host": "127.0.0.1",
        "port": str(port),
        "max-loras": str(MAX_LORAS + 1),
        "max-lora-rank": str(RANK),
        "scheduling-policy": "priority",
        "dtype": "bfloat16",
        "block-size": "32",
        "max-model-len": "4096",
    }
    switches = [
        "--enable-lora",
        # Nothing else may be adapted: vLLM's CPU build copies the adapter's part of each module
        # for each token, and took 34 s for 1,700 tokens with all of them, 3.4 s with these.
        "--lora-target-modules",
        *MODULES,
        "--enable-prefix-caching",
        "--enable-prompt-tokens-details",
        "--enable-scale-out",  # without it /v1/chat/completions/render answers 403
        "--enforce-eager",
        "--disable-uvicorn-access-log",
    ]
    # -I: neither PYTHONPATH nor the caller's folder may reach into the host's environment.
    program = [str(files.python), "-I", "-m", "vllm.entrypoints.openai.api_server"]
    return Launch(
        name=f"vllm-{index + 1}",
        kind="vllm",
        url=f"http://127.0.0.1:{port}",
        argv=[*program, *switches, *(p for k, v in arguments.items() for p in (f"--{k}", v))],
        env=_vllm_environment(len(cores), cache_gib=2 if hosts == 1 else 1, home=home),
        cores=cores,
        made=files.made,
        model=MODEL_NAME,
    )


def core_share(cores: list[int], index: int, hosts: int) -> list[int]:
    """Return the cores of one of several hosts: equal shares, at least one core each."""
    size = max(1, len(cores) // hosts)
    begin = (index * size) % len(cores)
    return cores[begin : begin + size]


def redis_version(url: str) -> str | None:
    """Return the version of the Redis at `url` where it answers, else None."""
    try:
        with redis.Redis.from_url(url, socket_timeout=PATIENCE_SECONDS) as client:
            return str(client.info("server")["redis_version"])
    except redis.RedisError:
        return None


def vllm_version(url: str) -> str | None:
    """Return the version of the vLLM at `url` where it generates, else None.

    One token is asked for, because `/health` answers before a first request has been through the
    engine, and the first one takes several times as long as any later one.
    """
    try:
        # Without the environment's proxies: this is loopback.
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            client.get("/health").raise_for_status()
            one_token = {"model": MODEL_NAME, "prompt": "ready", "max_tokens": 1}
            client.post("/v1/completions", json=one_token).raise_for_status()
            return str(client.get("/version").raise_for_status().json()["version"])
    except httpx.HTTPError:
        return None


def _vllm_environment(threads: int, cache_gib: int, home: Path) -> dict[str, str]:
    """Return the caller's environment with every vLLM setting replaced by ours."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_")}
    return kept | {
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
        # Waiting threads sleep instead of spinning. Where anything else runs on the same cores,
        # spinning was seen to cost most of the speed: 1 token/s instead of 32, beside one process.
        "OMP_WAIT_POLICY": "PASSIVE",
        # vLLM compiles the ranking of log-probabilities, and dies where there is no C++ compiler.
        "TORCHDYNAMO_DISABLE": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        "VLLM_CACHE_ROOT": str(home / "cache"),
        "VLLM_CONFIG_ROOT": str(home / "cache"),
        "VLLM_CPU_KVCACHE_SPACE": str(cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_NO_USAGE_STATS": "1",
    }
