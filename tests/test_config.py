"""Settings: what is accepted, what is refused and with which words."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from warmup_lib.config import Config, key_secret, load_config
from warmup_lib.errors import ConfigError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "warmup.yaml"
    path.write_text(text)
    return path


def test_defaults_are_valid() -> None:
    assert Config().targets == "embedded"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("48h", 172800), ("3d", 259200), ("60", 60), ("1500ms", 1.5)],
)
def test_durations(tmp_path: Path, text: str, seconds: float) -> None:
    config = load_config(write(tmp_path, f"layers: {{responses: {{ttl: {text}}}}}"))
    assert config.layers.responses.ttl == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("layer: {}", "layer"),
        ("gates: {warmup_completion: 2}", "gates.warmup_completion"),
        ("timezone: Mars/Olympus", "IANA zone"),
        ("- a", "settings as `name: value`"),
        ("a: [", "YAML"),
        ("targets: [{kind: ftp, name: x}]", "targets"),
        ("layers: {responses: {ttl: soon}}", "layers.responses.ttl"),
        ("schedule: {lead: 24h}", "schedule.lead"),
        ("layers: {responses: {ttl: 0}}", "layers.responses.ttl"),
        ("forecast: {lookback: 99999999999d}", "forecast.lookback"),
        ("forecast: {lookback: 12h}", "forecast.lookback: .*whole days: set it to 1d, 28d"),
        ("forecast: {lookback: 36h}", "forecast.lookback: .*whole days"),
        ("timezone: America", "IANA zone"),
        ("encoder: {name: ''}", "encoder.name"),
        ("schedule: {lead: 30s}", "schedule.lead"),
        ("plan: {sources: {queries: {weight: 0}}}", "plan.sources.queries.weight"),
        ("plan: {sources: {queries: {weight: .inf}}}", "plan.sources.queries.weight"),
        ("plan: {sources: {searches: {}}}", "plan.sources: no such setting: searches"),
        (
            "plan: {budgets: {redis: 1GB}}",
            r"plan.budgets: no such setting: redis \(there are redis_bytes, kv_tokens, seconds\)",
        ),
        ("plan: {tenants: {acme: 0.3}}", "plan.tenants.acme: takes .* of floor, cap"),
        ("layrs: {}", r"no such setting: layrs \(there are lake, timezone"),
        (f"plan: {{budgets: {{redis_bytes: {10**30}}}}}", "plan.budgets.redis_bytes"),
        (f"plan: {{budgets: {{kv_tokens: {{h: {10**30}}}}}}}", "plan.budgets.kv_tokens.h"),
        ("x: 2026-13-45", "can't be read as YAML: ValueError"),
        ("[" * 5000, "can't be read as YAML: RecursionError"),
        (
            "plan: {sources: {languages: {sets: {pt_BR: a, pt-br: b}}}}",
            "more than one set of pt-br",
        ),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_config(write(tmp_path, text))


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "a b", "\x1b[31m", "n" * 65])
def test_a_target_has_a_name_that_can_be_a_key(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        Config.model_validate({"targets": [{"kind": "redis", "name": name}]})


def test_tokens_are_budgeted_for_configured_hosts_only(tmp_path: Path) -> None:
    targets = "targets: [{kind: host, name: h-1}, {kind: redis, name: cache}]\n"
    budgets = "plan: {budgets: {kv_tokens: {HOST: 1}}}"
    says = r"valid: plan.budgets.kv_tokens: no such target: nope \(there are h-1\)$"
    with pytest.raises(ConfigError, match=says):
        load_config(write(tmp_path, targets + budgets.replace("HOST", "nope")))
    says = r"no such target: h-1, vllm-0 \(there are vllm-1, vllm-2 and so on, which `warmup stack"
    with pytest.raises(ConfigError, match=says):
        load_config(write(tmp_path, budgets.replace("HOST: 1", "h-1: 5, vllm-0: 5, vllm-2: 5")))
    for text in (targets + budgets.replace("HOST", "h-1"), budgets.replace("HOST", "vllm-1")):
        assert load_config(write(tmp_path, text)).plan.budgets.shared


def test_a_missing_file_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="warmup init"):
        load_config(tmp_path / "absent.yaml")


def test_lake_argument_wins(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "lake: file:///a"), lake="file:///b").lake == "file:///b"


def test_a_day_begins_in_the_configured_zone() -> None:
    at = datetime(2026, 3, 14, 17, 0, tzinfo=UTC)
    assert Config(timezone="Asia/Shanghai").local_day(at).isoformat() == "2026-03-15"
    assert Config().local_day(at).isoformat() == "2026-03-14"


def test_digest_ignores_where_things_are_and_follows_what_is_planned() -> None:
    base = Config()
    assert Config(lake="file:///elsewhere").digest() == base.digest()
    assert Config.model_validate({"forecast": {"half_life": "1d"}}).digest() != base.digest()


def test_secret_comes_from_the_environment_else_from_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WARMUP_SECRET", raising=False)
    first = key_secret(Config())
    assert key_secret(Config()) == first
    assert stat.S_IMODE((tmp_path / "home" / "secret").stat().st_mode) == 0o600
    monkeypatch.setenv("WARMUP_SECRET", "x" * 40)
    assert key_secret(Config()) == b"x" * 40
    monkeypatch.setenv("WARMUP_SECRET", "short")
    with pytest.raises(ConfigError, match="openssl rand"):
        key_secret(Config())
