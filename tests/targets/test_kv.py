"""How many bytes a token takes in a host's cache."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.targets.tiny_host import MODEL, TinyHost, serving
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.kv import bytes_of_config, token_bytes

SMOLLM = {
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "hidden_size": 576,
    "dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("change", "stored", "expected"),
    [
        ({}, None, 23_040),
        ({"dtype": "float32"}, None, 46_080),
        ({}, "fp8_e4m3", 11_520),
        ({"dtype": None, "torch_dtype": "float16"}, None, 23_040),
        ({"head_dim": None}, None, 23_040),
        ({"num_key_value_heads": None}, None, 69_120),
        ({"kv_lora_rank": 512}, None, 0),
        ({"layer_types": ["full_attention", "sliding_attention"]}, None, 0),
        ({"layer_types": ["full_attention"]}, None, 23_040),
        ({"sliding_window": 4096}, None, 0),
        ({"sliding_window": 4096, "use_sliding_window": False}, None, 23_040),
        ({"dtype": "int3"}, None, 0),
        ({"num_hidden_layers": None}, None, 0),
    ],
)
def test_bytes_of_a_token(change: dict[str, Any], stored: str | None, expected: int) -> None:
    assert bytes_of_config(SMOLLM | change, stored) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [(json.dumps(SMOLLM), 23_040), ("[]", 0), ("{", 0), (None, 0)],
)
def test_the_models_folder_tells(tmp_path: Path, written: str | None, expected: int) -> None:
    if written is not None:
        (tmp_path / "config.json").write_text(written)

    async def work(url: str) -> list[int]:
        host = ModelHost("gpu", url)
        try:
            return [await token_bytes(host, name) for name in (MODEL, "another")]
        finally:
            await host.close()

    with serving(TinyHost()) as tiny:
        tiny.root = str(tmp_path)
        assert asyncio.run(work(tiny.url)) == [expected, 0]
