"""Configured dimensions: from settings and log to the key, and refused where they are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from warmup_lib import pipeline
from warmup_lib.config import Config, load_config
from warmup_lib.errors import ConfigError
from warmup_lib.keys import Request
from warmup_lib.lake import Lake

SETTINGS = """
dimensions:
  extra.client.device: {default: web, synonyms: {android: mobile, ios: mobile}}
  locale: {}
  params.persona: {}
"""


def settings(folder: Path, text: str = SETTINGS) -> Config:
    file = folder / "warmup.yaml"
    file.write_text(text)
    return load_config(file, lake=f"file://{folder}/lake")


def digests(config: Config, folder: Path, rows: list[dict[str, Any]]) -> list[str]:
    """Ingest rows, and return the digests of their answers."""
    file = folder / "log.jsonl"
    base = {"ts": "2026-03-14T10:00:00Z", "tenant": "acme", "model": "m", "prompt": "hello"}
    lines = [base | {"request_id": f"r{n:03}"} | row for n, row in enumerate(rows)]
    file.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    assert pipeline.ingest(config, [file], "jsonl").facts["rows_kept"] == len(rows)
    query = "SELECT response_digest FROM requests ORDER BY request_id"
    with Lake(config.lake).sql() as connection:
        return [row[0] for row in connection.sql(query).fetchall()]


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", "a secret of the tests of dimensions")


def test_the_log_and_an_application_have_the_same_keys(tmp_path: Path) -> None:
    config = settings(tmp_path)
    device = lambda name: {"client": {"device": name}, "browser": name}  # noqa: E731
    rows = [
        {},
        {"extra": device("web"), "user_segment": "vip", "session_id": "s-1"},
        {"client": {"device": "android"}},
        {"extra": device("mobile")},
        {"extra": device("tablet")},
        {"locale": "de"},
        {"params": {"persona": "pirate", "user": "u"}},
    ]
    found = digests(config, tmp_path, rows)
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found)) == 5
    keys = pipeline.open_keys(config)
    asked: Callable[..., str] = lambda **more: (  # noqa: E731
        keys.identity(Request("acme", "m", "hello", dimensions=more)).response
    )
    names = ["extra.client.device", "locale", "params.persona"]
    said = [{}, {}, {names[0]: "ios"}, {names[0]: "mobile"}, {names[0]: "tablet"}]
    said += [{names[1]: "de"}, {names[2]: "pirate"}]
    assert [asked(**more) for more in said] == found


def test_without_settings_no_such_field_counts(tmp_path: Path) -> None:
    rows = [{}, {"locale": "de"}, {"extra": {"client": {"device": "tv"}}}, {"ab_arm": "b"}]
    assert len(set(digests(settings(tmp_path, "timezone: UTC"), tmp_path, rows))) == 1


def test_a_lake_keeps_to_its_dimensions(tmp_path: Path) -> None:
    digests(settings(tmp_path), tmp_path, [{}])
    pipeline.open_keys(settings(tmp_path))
    with pytest.raises(ConfigError, match="filled under dimensions"):
        pipeline.open_keys(settings(tmp_path, "timezone: UTC"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dimensions: {tenant: {}}", "a dimension is one of user_segment"),
        ("dimensions: {model: {}}", "docs/keys.md lists what is in every key already"),
        ("dimensions: {request_id: {}}", "a dimension is one of"),
        ("dimensions: {extra.: {}}", "a dimension is one of"),
        ("dimensions: {locale: {synonyms: {a: b, b: c}}}", "b can't be both a synonym"),
        ("dimensions: {locale: {fallback: de}}", "dimensions.locale: no such setting: fallback"),
    ],
)
def test_what_is_no_dimension_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        settings(tmp_path, text)
