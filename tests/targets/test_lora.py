"""What a host says of its adapters, and what loading and unloading make of its answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import TypeVar

import pytest

from tests.targets.tiny_adapters import BASE, write_adapter
from tests.targets.tiny_host import MODEL, TinyHost, serving
from warmup_lib.errors import ConfigError, HostUnavailable
from warmup_lib.targets import lora
from warmup_lib.targets.chat import RequestRefused
from warmup_lib.targets.host import ModelHost

T = TypeVar("T")


@pytest.fixture
def tiny() -> Iterator[TinyHost]:
    with serving(TinyHost()) as host:
        yield host


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return write_adapter(tmp_path / "lora")


def run(tiny: TinyHost, work: Callable[[ModelHost], Awaitable[T]]) -> T:
    async def inside() -> T:
        host = ModelHost("gpu", tiny.url, timeout_s=5)
        try:
            return await work(host)
        finally:
            await host.close()

    return asyncio.run(inside())


def test_a_loaded_adapter_is_listed_with_its_folder_and_model(tiny: TinyHost, folder: str) -> None:
    assert run(tiny, lora.listed) == {}
    run(tiny, lambda h: lora.load(h, "a", folder))
    assert run(tiny, lora.listed) == {"a": lora.Listed("a", folder, MODEL)}
    run(tiny, lambda h: lora.unload(h, "a"))
    assert run(tiny, lora.listed) == {}


def test_loaded_already_is_fine_from_the_same_folder_only(tiny: TinyHost, folder: str) -> None:
    run(tiny, lambda h: lora.load(h, "a", folder))
    run(tiny, lambda h: lora.load(h, "a", folder))
    with pytest.raises(RequestRefused, match="loaded from another folder"):
        run(tiny, lambda h: lora.load(h, "a", "/elsewhere"))
    with pytest.raises(RequestRefused, match="HTTP 400: the host refuses the request"):
        run(tiny, lambda h: lora.load(h, MODEL, folder))


def test_why_an_adapter_was_not_loaded(tiny: TinyHost, folder: str) -> None:
    with pytest.raises(RequestRefused, match="finds no adapter at the folder"):
        run(tiny, lambda h: lora.load(h, "a", folder + "/none"))
    tiny.adapters.at_run_time = False
    with pytest.raises(lora.NotAtRunTime):
        run(tiny, lambda h: lora.load(h, "a", folder))
    for status, error in ((401, ConfigError), (503, HostUnavailable), (500, RequestRefused)):
        tiny.status["/v1/load_lora_adapter"] = status
        with pytest.raises(error):
            run(tiny, lambda h: lora.load(h, "a", folder))


def test_unloading_what_is_not_there_is_done(tiny: TinyHost) -> None:
    run(tiny, lambda h: lora.unload(h, "a"))
    tiny.status["/v1/unload_lora_adapter"] = 500
    with pytest.raises(RequestRefused):
        run(tiny, lambda h: lora.unload(h, "a"))


def test_slots_and_what_requests_used_lately(tiny: TinyHost) -> None:
    now = time.time()
    tiny.adapters.used = {"a,b": now - 3, "b": now - 1, "c": now - lora.QUIET_S - 5}
    slots = run(tiny, lora.slots)
    assert slots.most == 4
    assert slots.used_s["a"] == pytest.approx(3, abs=1.5)
    assert slots.used_s["b"] == pytest.approx(1, abs=1.5)
    assert [slots.busy(name) for name in "abcd"] == [True, True, False, False]


def test_slots_and_times_that_are_no_numbers(
    tiny: TinyHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "".join(
        f'vllm:lora_requests_info{{max_lora="\u00b2",running_lora_adapters="a"}} {at}\n'
        for at in ("foo", "NaN", "1e5e5")
    )
    monkeypatch.setattr(tiny, "metrics", lambda: page)
    assert run(tiny, lora.slots) == lora.Slots(None, {})


def test_a_host_that_says_nothing_of_slots(tiny: TinyHost) -> None:
    tiny.adapters.slots = None
    assert run(tiny, lora.slots) == lora.Slots(None, {})
    tiny.status["/metrics"] = 404
    assert run(tiny, lora.slots) == lora.Slots(None, {})


def test_first_tokens_are_taken_under_fresh_salts_where_the_host_salts(tiny: TinyHost) -> None:
    assert run(tiny, lambda h: lora.first_token(h, MODEL, {})) == BASE
    run(tiny, lambda h: lora.first_token(h, MODEL, {}))
    asked = [body for body in tiny.prefills if "logprobs" in body]
    assert len({body["cache_salt"] for body in asked}) == 2
    assert all(body["max_tokens"] == 1 and body["priority"] > 0 for body in asked)
    tiny.knows -= {"salt", "priority"}
    run(tiny, lambda h: lora.first_token(h, MODEL, {}))
    assert not {"cache_salt", "priority"} & set(tiny.prefills[-1])
    with pytest.raises(RequestRefused, match="not served here"):
        run(tiny, lambda h: lora.first_token(h, "unknown", {}))


def compared(tiny: TinyHost) -> lora.Apart:
    return run(tiny, lambda h: lora.compare(h, lora.Listed("a", "", MODEL), {}))


def test_an_adapter_is_told_from_its_model_by_its_first_token(tiny: TinyHost, folder: str) -> None:
    run(tiny, lambda h: lora.load(h, "a", folder))
    found = compared(tiny)
    assert found.differs
    assert (found.base, found.noise) == (BASE[" the"], 0)
    assert found.adapter == pytest.approx(found.base - 3 * tiny.adapters.shifts["a"])
    sent = [body["model"] for body in tiny.prefills if "logprobs" in body]
    assert sent == [MODEL, "a", MODEL]


def test_an_adapter_without_effect_is_not(tiny: TinyHost, tmp_path: Path) -> None:
    run(tiny, lambda h: lora.load(h, "a", write_adapter(tmp_path / "inert", b"inert")))
    assert not compared(tiny).differs


def test_a_host_that_contradicts_itself_proves_nothing(tiny: TinyHost, folder: str) -> None:
    run(tiny, lambda h: lora.load(h, "a", folder))
    tiny.adapters.noise = cycle([0.0, tiny.adapters.shifts["a"] + 1])
    found = compared(tiny)
    assert found.noise > found.gap > lora.SAME
    assert not found.differs
