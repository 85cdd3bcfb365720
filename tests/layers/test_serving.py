"""An adapter is served only where a host target names it; what has no adapter always is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from warmup_lib.config import Config
from warmup_lib.layers.serving import served_adapters, unserved

REDIS = {"kind": "redis", "name": "cache", "url": "redis://127.0.0.1:1"}


def host(name: str, *adapters: str) -> dict[str, Any]:
    models = {adapter: f"{adapter}-v2" for adapter in adapters}
    return {"kind": "host", "name": name, "url": "http://127.0.0.1:1", "models": models}


def settings(*targets: dict[str, Any]) -> Config:
    return Config.model_validate({"targets": list(targets)})


def test_adapters_are_those_that_any_host_names_by_their_name_in_the_log() -> None:
    config = settings(REDIS, host("a", "legal", "retail"), host("b", "retail", "travel"), host("c"))
    assert served_adapters(config) == {"legal", "retail", "travel"}


@pytest.mark.parametrize("config", [Config(), settings(), settings(REDIS), settings(host("a"))])
def test_where_no_host_names_one_every_adapter_is_unserved(config: Config) -> None:
    assert served_adapters(config) == set()
    assert unserved(pa.array(["legal", None]), config).to_pylist() == [True, False]


def test_only_an_adapter_that_no_host_names_is_unserved() -> None:
    config = settings(host("a", "legal"), host("b", "travel"))
    adapters = pa.chunked_array([["legal", None], ["travel", "Legal", "legal-v2", ""]])
    expected = [False, False, False, True, True, True]
    assert unserved(adapters, config).to_pylist() == expected
    assert unserved(pa.array([None, None], pa.string()), config).to_pylist() == [False, False]
    assert unserved(pa.array([], pa.string()), config).to_pylist() == []
