"""The seven traps, each set on the real stack by itself, and the doctor sent to look at it."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.gauntlet.corpus import TENANTS, Ask
from tests.gauntlet.gateway import Wrong
from tests.gauntlet.shots import EACH, Shot
from tests.gauntlet.world import World

_STATIC = 256
_SICK = 24
"""Requests with the trap in them; as many sound ones are beside them where that is how it comes."""


def cli(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run `warmup` as a user does; return its exit code and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "warmup_lib.cli", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, told


def doctor(world: World, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run `warmup doctor`; return its exit code and what it says."""
    code, told = cli("doctor", "--config", str(world.settings), *arguments)
    assert "traps" in told, told
    return code, told


def statuses(told: Mapping[str, Any]) -> dict[str, str]:
    """Return the status of each trap."""
    return {name: trap["status"] for name, trap in told["traps"].items()}


def found(told: Mapping[str, Any]) -> list[str]:
    """Return the traps that were found."""
    return [name for name, status in statuses(told).items() if status == "found"]


def sick(trap: str, asks: Sequence[Ask], host: str, rng: random.Random) -> list[Shot]:
    """Return traffic with one trap in it.

    Args:
        trap: The trap.
        asks: Questions whose answers are warm.
        host: A host that has their system prompts.
        rng: The draw.
    """
    again = [ask for ask in asks[: _SICK // 2] for _ in range(4)]
    rng.shuffle(again)
    sound = [Shot(ask) for ask in rng.sample(list(asks), 2 * _SICK)]
    if trap == "tokenisation":
        return [Shot(ask, wrong=Wrong(first=rng.randint(9, 20))) for ask in again]
    if trap == "kv_length":
        return [_padded(ask, n, host) for n, ask in enumerate(asks[:_SICK])]
    if trap == "tenant":
        shared = [ask for ask in again if ask.tenant in TENANTS]
        return [*sound, *(Shot(a, wrong=Wrong(tenant=_other(a, rng))) for a in shared[:EACH])]
    if trap == "bypass":
        header = {"cache-control": "no-cache"}
        flag = {"params": {"skip_cache": True}}
        return [
            *sound,
            *(Shot(ask, headers=header) for ask in again[: EACH // 3]),
            *(Shot(replace(ask, fields=flag)) for ask in again[-EACH // 3 :]),
            *(Shot(ask, wrong=Wrong(blind=True)) for ask in again[EACH : EACH + EACH // 3]),
        ]
    assert trap == "key_dimensions"
    devices = ("mobile", "desktop", "tablet")
    fields = [{"extra": {"device": rng.choice(devices), "app": "4.1"}} for _ in again]
    return [
        Shot(replace(ask, fields=extra), wrong=Wrong(dimension="device"))
        for ask, extra in zip(again, fields, strict=True)
    ]


def _other(ask: Ask, rng: random.Random) -> str:
    return rng.choice([name for name in TENANTS if name != ask.tenant])


def _padded(ask: Ask, number: int, host: str) -> Shot:
    said = f"Please tell me number {number} of {'many ' * (3 * number)}things about my account."
    return Shot(replace(ask, prompt=said), wrong=Wrong(host=host, length=_STATIC))


def spoilt_model(folder: Path, copy: Path) -> Path:
    """Return a copy of a model whose config and shards disagree in one tensor's shape."""
    copy.mkdir()
    for file in folder.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, copy / file.name)
            continue
        raw = file.read_bytes()
        [size] = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + size])
        name = next(n for n in sorted(header) if n.endswith("mlp.up_proj.weight"))
        header[name]["shape"].reverse()
        made = json.dumps(header).encode()
        (copy / file.name).write_bytes(struct.pack("<Q", len(made)) + made + raw[8 + size :])
    return copy
