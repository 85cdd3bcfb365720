"""An adapter is served where a host target names it or the plan loads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.layers.building import demand, head, new_keys
from tests.targets.tiny_adapters import write_adapter
from warmup_lib.config import Config
from warmup_lib.layers.serving import named_adapters, planned_adapters, unserved

REDIS = {"kind": "redis", "name": "cache", "url": "redis://127.0.0.1:1"}


def host(name: str, *adapters: str) -> dict[str, Any]:
    models = {adapter: f"{adapter}-v2" for adapter in adapters}
    return {"kind": "host", "name": name, "url": "http://127.0.0.1:1", "models": models}


def settings(*targets: dict[str, Any], **adapters: Any) -> Config:
    return Config.model_validate({"targets": list(targets), "layers": {"adapters": adapters}})


def test_adapters_are_those_that_any_host_names_by_their_name_in_the_log() -> None:
    config = settings(REDIS, host("a", "legal", "retail"), host("b", "retail", "travel"), host("c"))
    assert named_adapters(config) == {"legal", "retail", "travel"}


@pytest.mark.parametrize("config", [Config(), settings(), settings(REDIS), settings(host("a"))])
def test_where_no_host_names_one_every_adapter_is_unserved(config: Config) -> None:
    assert named_adapters(config) == set()
    assert unserved(pa.array(["legal", None]), config, ()).to_pylist() == [True, False]


def test_only_an_adapter_that_nobody_serves_is_unserved() -> None:
    config = settings(host("a", "legal"), host("b", "travel"))
    adapters = pa.chunked_array([["legal", None], ["travel", "Legal", "legal-v2", "", "loaded"]])
    expected = [False, False, False, True, True, True, False]
    assert unserved(adapters, config, {"loaded": "loaded-0a"}).to_pylist() == expected
    nothing = pa.array([None, None], pa.string())
    assert unserved(nothing, config, ()).to_pylist() == [False, False]
    assert unserved(pa.array([], pa.string()), config, ()).to_pylist() == []


def test_the_plan_loads_the_most_asked_for_of_known_folders_one_a_slot(tmp_path: Path) -> None:
    keys = new_keys()
    heat = {"a": 5, "b": 9, "c": 7, "unknown": 99, "d": 0}
    folders = {n: write_adapter(tmp_path / n, n.encode()) for n in heat if n != "unknown"}
    of = demand(heads=[head(keys, "t", "s", h, adapter=name) for name, h in heat.items()])
    assert planned_adapters(of, settings(folders=folders)) == {"a", "b", "c"}
    assert planned_adapters(of, settings(folders=folders, items=2)) == {"b", "c"}
    assert planned_adapters(of, settings(folders=folders, enabled=False)) == set()
