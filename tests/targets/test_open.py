"""Settings become targets; what is missing is said with the fix."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from warmup_lib.config import Config, HostTarget, RedisTarget
from warmup_lib.errors import ConfigError
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.open import close_all, open_targets
from warmup_lib.targets.store import RedisStore

REDIS = RedisTarget(name="cache", url="redis://127.0.0.1:1")
HOST = HostTarget(kind="host", name="gpu", url="http://127.0.0.1:1/", cache_salt="derived")


def test_in_the_configured_order_and_by_name() -> None:
    config = Config(targets=[HOST, REDIS])
    targets = open_targets(config)
    assert [(t.name, t.kind, type(t)) for t in targets] == [
        ("gpu", "host", ModelHost),
        ("cache", "redis", RedisStore),
    ]
    assert isinstance(targets[0], ModelHost)
    assert targets[0].cache_salt == "derived"
    assert [t.name for t in open_targets(config, ["cache"])] == ["cache"]
    asyncio.run(close_all(targets))


@pytest.mark.parametrize(
    ("targets", "names", "words"),
    [
        ([], None, "names no targets"),
        ([REDIS], ["cahce"], "no such target: cahce; there are cache"),
        ([REDIS, REDIS], None, "two targets have one name: cache"),
        ([RedisTarget(name="r")], None, "'r' has no address: it has no url"),
        ([RedisTarget(name="r", connection="c")], None, "its connection 'c' can be read inside"),
        ([RedisTarget(name="r", url="http://x")], None, "must begin with redis://"),
        ([HostTarget(kind="host", name="h", url="x:1")], None, "must begin with http://"),
    ],
)
def test_what_is_missing_is_said(
    targets: list[RedisTarget | HostTarget], names: list[str] | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        open_targets(Config(targets=targets), names)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(targets=[HOST.model_copy(update={"api_key_env": "TEST_HOST_KEY"})])
    monkeypatch.delenv("TEST_HOST_KEY", raising=False)
    with pytest.raises(ConfigError, match="from TEST_HOST_KEY, which is not set"):
        open_targets(config)
    monkeypatch.setenv("TEST_HOST_KEY", "k")
    assert len(open_targets(config)) == 1


def test_nothing_runs_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="run `warmup stack up`"):
        open_targets(Config())
