"""The adapters of the tiny host: it reads a folder as it loads it, and answers by what it read."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

Answer = tuple[int, dict[str, Any]]

BASE = {" a": -2.0, " not": -3.0, " the": -3.5}


@dataclass
class TinyAdapters:
    slots: int | None = 4
    at_run_time: bool = True
    roots: dict[str, str] = field(default_factory=dict)
    shifts: dict[str, float] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    noise: Any = field(default_factory=lambda: cycle([0.0]))

    def cards(self, base: str) -> list[dict[str, Any]]:
        return [{"id": name, "root": root, "parent": base} for name, root in self.roots.items()]

    def metrics(self) -> str:
        if self.slots is None:
            return ""
        line = 'vllm:lora_requests_info{{max_lora="{}",running_lora_adapters="{}",{}}} {}\n'
        sets = [*self.used.items(), ("", time.time())]
        return "".join(
            line.format(self.slots, names, 'waiting_lora_adapters=""', at) for names, at in sets
        )

    def load(self, body: dict[str, Any], base: str) -> Answer:
        name, root = body["lora_name"], body["lora_path"]
        self.calls.append(("load", name))
        if not self.at_run_time:
            return 404, {"detail": "Not Found"}
        if name in self.roots or name == base:
            return 400, {"error": {"message": f"{name} has already been loaded"}}
        try:
            shift = weights_shift(Path(root))
        except OSError:
            return 404, {"error": {"message": f"no adapter found for {root}"}}
        self.roots[name], self.shifts[name] = root, shift
        return 200, {}

    def unload(self, body: dict[str, Any]) -> Answer:
        name = body["lora_name"]
        self.calls.append(("unload", name))
        if self.roots.pop(name, None) is None:
            return 404, {"error": {"message": "cannot be found"}}
        return 200, {}

    def logprobs(self, model: str, base: str) -> dict[str, float] | None:
        """Return the first tokens of a model or adapter; None: it is not served."""
        if model != base and model not in self.roots:
            return None
        shift = next(self.noise) if model == base else self.shifts[model]
        return {token: value - shift * (n + 1) for n, (token, value) in enumerate(BASE.items())}


def weights_shift(folder: Path) -> float:
    weights = b"".join(file.read_bytes() for file in sorted(folder.glob("*.safetensors")))
    if not weights:
        raise FileNotFoundError(folder)
    return 0.0 if weights == b"inert" else 0.1 + hashlib.sha256(weights).digest()[0] / 256


def write_adapter(folder: Path, weights: bytes = b"weights", **settings: Any) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 8, **settings}))
    (folder / "adapter_model.safetensors").write_bytes(weights)
    return str(folder)
