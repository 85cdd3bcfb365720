"""What a host tells of its models and engines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.targets.tiny_host import MODEL, TinyHost, serving
from warmup_lib.errors import ConfigError
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.models import Served, engines, served_models

# As vLLM prints it, one line an engine.
RUNNING = 'vllm:num_requests_running{{engine="{}",model_name="m, engine=\\"9\\""}} 0.0\n'


def ask(tiny: TinyHost, work: Callable[[ModelHost], Any]) -> Any:
    async def inside() -> Any:
        host = ModelHost("gpu", tiny.url)
        try:
            return await work(host)
        finally:
            await host.close()

    with serving(tiny):
        return asyncio.run(inside())


def test_root_and_context_are_told() -> None:
    tiny = TinyHost()
    assert ask(tiny, served_models) == {MODEL: Served(None, None)}
    tiny.root, tiny.context = "/models/m", 4096
    assert ask(tiny, served_models) == {MODEL: Served("/models/m", 4096)}


def test_a_refused_key_is_said() -> None:
    tiny = TinyHost()
    tiny.status["/v1/models"] = 401
    with pytest.raises(ConfigError, match="refuses the key"):
        ask(tiny, served_models)


@pytest.mark.parametrize(
    ("root", "revision"),
    [
        (None, None),
        ("someone/model", None),
        ("/models/snapshots/latest", None),
        ("/hub/models--x--y/snapshots/0123456789abcdef", "0123456789abcdef"),
        ("/hub/models--x--y/snapshots/0123456789abcdef/", "0123456789abcdef"),
    ],
)
def test_a_folder_of_the_hub_cache_tells_its_commit(root: str | None, revision: str) -> None:
    assert Served(root, None).revision == revision


@pytest.mark.parametrize("count", [1, 2, 12])
def test_engines_are_counted_by_their_lines(count: int) -> None:
    tiny = TinyHost()
    tiny.engines = count
    assert ask(tiny, engines) == count


def test_engines_are_those_of_the_label_and_one_where_none_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny = TinyHost()
    page = RUNNING.format(4) + RUNNING.format(5) + RUNNING.format(5)
    monkeypatch.setattr(tiny, "metrics", lambda: page)
    assert ask(tiny, engines) == 2
    monkeypatch.setattr(tiny, "metrics", lambda: "")
    assert ask(tiny, engines) == 1
    tiny.status["/metrics"] = 404
    assert ask(tiny, engines) == 1
