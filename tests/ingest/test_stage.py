from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.ingest.stage import run
from warmup_lib.keys import Keys, Request
from warmup_lib.lake import Lake

from .conftest import AS_OF


def test_a_whole_row_is_stored_as_it_was(
    tmp_path: Path, write: Any, ingest: Any, stored: Any, lake: Lake, keys: Keys
) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"b": 1, "a": 2}}}]
    row = {
        "request_id": "req-1",
        "ts": "2026-03-14T23:30:00.250+08:00",
        "tenant": " acme ",
        "model": "smollm2",
        "prompt": "How do I reset my PIN?",
        "system_prompt": "Be brief.",
        "tools": tools,
        "model_revision": "r7",
        "adapter": "support",
        "user_segment": "premium_vip",
        "session_id": "550e8400-e29b-41d4-a716-446655440000",
        "locale": "en",
        "intent": "reset_pin",
        "ab_arm": "B",
        "ab_score": -0.5,
        "params": {"temperature": 0, "max_tokens": 96, "cache_salt": "s"},
        "cache_control": "max-age=60",
        "response": "In the app.",
        "status": 200,
        "prompt_tokens": 12,
        "completion_tokens": 4,
        "cached_tokens": 0,
        "ttft_ms": 81.5,
        "latency_ms": 250,
        "chunk_ids": ["c2", "c1"],
        "region": "eu",
        "extra": {"shard": 3},
    }
    report = ingest(write(tmp_path / "log.jsonl", row))
    (found,) = stored("requests")
    identity = keys.identity(
        Request(
            tenant="acme",
            model="smollm2",
            prompt="How do I reset my PIN?",
            system_prompt="Be brief.",
            tools=tools,
            model_revision="r7",
            adapter="support",
            params=row["params"],
        )
    )
    as_is = {k: v for k, v in row.items() if k not in {"region", "extra", "tools", "params"}}
    assert found == as_is | {
        "ts": datetime(2026, 3, 14, 15, 30, 0, 250_000, tzinfo=UTC),
        "tenant": "acme",
        "history": None,
        "tools": orjson.dumps(tools).decode(),
        "params": '{"cache_salt":"s","max_tokens":96,"temperature":0}',
        "served_from": None,
        "warmup": False,
        "health": False,
        "cache_hit": False,
        "bypass": False,
        "redacted": False,
        "text_digest": identity.text,
        "context_digest": identity.context,
        "response_digest": identity.response,
        "head_digest": identity.head,
        "extra": '{"shard":3,"region":"eu"}',
        "dialect": "jsonl",
        "source": found["source"],
        "position": 1,
    }
    assert lake.partitions("quarantine") == [{"source": found["source"]}]
    assert report.facts == {
        "rows_read": 1,
        "rows_kept": 1,
        "rows_quarantined": 0,
        "duplicates": 0,
        "days": ["2026-03-14"],
        "files": 1,
        "files_known": 0,
        "files_skipped": 0,
        "redacted": 0,
        "warmup_rows": 0,
        "quarantine": {},
    }


def test_a_file_without_any_line_of_a_log_is_named_and_skipped(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, lake: Lake
) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text('{\n  "days": [\n    "2026-03-14"\n  ]\n}\n')
    chunks = write(tmp_path / "help.jsonl", {"chunk_id": "c1", "document": "d", "text": "t"})
    short = write(tmp_path / "short.jsonl", {"tenant": "acme"})
    log = write(tmp_path / "log.jsonl", b"no JSON", canonical(1))
    report = ingest(manifest, chunks, short, log, dialect="auto")
    assert (report.rows_in, report.rows_out, report.facts["files_skipped"]) == (3, 1, 2)
    assert report.notes == ("skipped, no line is of a known log format: manifest.json, help.jsonl",)
    assert len(lake.partitions("quarantine")) == 2
    assert ingest(manifest, dialect="jsonl").facts["rows_quarantined"] == 5


def test_the_day_is_the_one_in_the_configured_zone(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, lake: Lake
) -> None:
    rows = [canonical(1, ts="2026-03-13T15:59:59Z"), canonical(2, ts="2026-03-13T16:00:00Z")]
    assert ingest(write(tmp_path / "a", *rows)).facts["days"] == ["2026-03-13", "2026-03-14"]
    assert [lake.read("requests", {"day": d}).num_rows for d in lake.days("requests")] == [1, 1]


def test_digests_are_of_the_whole_text_and_storage_is_of_the_redacted_one(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any, keys: Keys
) -> None:
    mail, secret = "jane.doe@mail.test", "sk-abcdefghijklmnop1234"
    ask = {"role": "user", "content": f"I am {mail}"}
    rows = [
        canonical(1, prompt=f"I am {mail}"),
        canonical(2, prompt=f"I am {mail.replace('jane', 'john')}"),
        canonical(3, system_prompt=f"Contact {mail}."),
        canonical(4, prompt=None, messages=[ask, {"role": "user", "content": "and now?"}]),
        canonical(5, response=f"Sent to {mail}."),
        canonical(6, tools=[{"key": secret}]),
        canonical(7, params={"stop": [mail]}),
        canonical(8, extra={mail: secret}, session_id=mail, user_segment=mail),
    ]
    report = ingest(write(tmp_path / "log", *rows))
    found = stored("requests")
    assert [r["redacted"] for r in found] == [True] * 7 + [False]
    assert report.facts["redacted"] == 7
    assert found[0]["prompt"] == found[1]["prompt"] == "I am <EMAIL>"
    assert found[0]["response_digest"] != found[1]["response_digest"]
    whole = keys.identity(Request("acme", "smollm2", f"I am {mail}"))
    assert found[0]["response_digest"] == whole.response
    assert (found[7]["extra"], found[7]["session_id"]) == ('{"<EMAIL>":"<SECRET>"}', "<EMAIL>")
    text = "".join(str(r) for r in found)
    assert mail not in text
    assert secret not in text


def test_cache_control_of_request_and_answer_are_kept_together(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    answered = {"Cache-Control": "no-store"}
    rows = [
        canonical(1, cache_control="max-age=60", response_headers=answered),
        canonical(2, headers={"cache-control": "private"}),
        canonical(3, extra={"response_headers": answered | {"X-Id": "7"}}),
        canonical(4, response_headers={"Cache-Control": 5}),
    ]
    ingest(write(tmp_path / "log", *rows))
    found = [(r["cache_control"], r["bypass"]) for r in stored("requests")]
    assert found == [
        ("max-age=60, no-store", False),
        ("private", False),
        ("no-store", False),
        (None, False),
    ]


def test_marks(tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any) -> None:
    rows = [
        canonical(1),
        canonical(2, request_id="warmup-7"),
        canonical(3, warmup=True),
        canonical(4, headers={"X-Warmup": "plan-1"}),
        canonical(5, served_from="responses"),
        canonical(6, cache_control="no-cache"),
        canonical(7, skip_cache=True),
        canonical(8, params={"cache_enabled": False}),
        canonical(9, disable_cache=True),
        canonical(10, prompt="ping", params={"max_tokens": 1}),
        canonical(11, user_agent="kube-probe/1.31"),
        canonical(12, headers={"Cache-Control": "no-store"}),
        canonical(13, extra={"route": "/healthz"}),
    ]
    report = ingest(write(tmp_path / "log", *rows))
    found = stored("requests")
    marked = {
        name: [r["position"] for r in found if r[name]]
        for name in ("warmup", "cache_hit", "bypass", "health")
    }
    assert marked == {
        "warmup": [2, 3, 4],
        "cache_hit": [5],
        "bypass": [6, 7, 8, 9, 12],
        "health": [10, 11, 13],
    }
    assert report.facts["warmup_rows"] == 3


# -- files -----------------------------------------------------------------------------------------


def test_what_can_not_be_read_is_named(tmp_path: Path, ingest: Any) -> None:
    with pytest.raises(InputDataError, match=r"absent\.jsonl can't be read: No such file"):
        ingest(tmp_path / "absent.jsonl")
    with pytest.raises(InputDataError, match="can't be read: Is a directory"):
        ingest(tmp_path)
    with pytest.raises(InputDataError, match="'nginx'; known are jsonl, litellm and auto"):
        ingest(tmp_path / "absent.jsonl", dialect="nginx")


def test_progress_counts_bytes_up_to_the_total(
    tmp_path: Path, canonical: Any, write: Any, config: Config, keys: Keys, lake: Lake
) -> None:
    files = [
        write(tmp_path / "a", *[canonical(n) for n in range(3000)]),
        write(tmp_path / "b", canonical(1)),
    ]
    total = sum(f.stat().st_size for f in files)
    told: list[tuple[str, int, int | None]] = []
    run(lake, files, "jsonl", config, keys, lambda *what: told.append(what), AS_OF)
    done = [d for _, d, _ in told]
    assert {(w, t) for w, _, t in told} == {("bytes read", total)}
    assert done == sorted(done)
    assert 0 < done[0] <= done[-1] == total


def test_auto_tells_the_dialect_of_each_file(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    litellm = {
        "request_id": "chatcmpl-1",
        "call_type": "acompletion",
        "startTime": "2026-03-14T10:00:00",
        "endTime": "2026-03-14T10:00:01",
        "team_id": "acme",
        "model_group": "smollm2",
        "proxy_server_request": {"messages": [{"role": "user", "content": "hi"}]},
    }
    files = [
        write(tmp_path / "a", b"broken", {"x": 1}, canonical(1)),
        write(tmp_path / "b", litellm),
        write(tmp_path / "c", b"all", b"broken"),
    ]
    assert ingest(*files, dialect="auto").facts["rows_kept"] == 2
    assert sorted(r["dialect"] for r in stored("requests")) == ["jsonl", "litellm"]
    assert {r["dialect"] for r in stored("quarantine")} == {"jsonl"}


def test_short_fields_and_numbers_are_redacted_too(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    mail = "jane@example.com"
    row = canonical(
        params={"card": 4111111111111111},
        locale=mail,
        cache_control=f"no-cache {mail}",
        served_from=mail,
    )
    ingest(write(tmp_path / "log", row))
    (kept,) = stored("requests")
    assert (kept["locale"], kept["served_from"]) == ("<EMAIL>", "<EMAIL>")
    assert kept["cache_control"] == "no-cache <EMAIL>"
    assert (kept["params"], kept["redacted"], kept["bypass"]) == ('{"card":"<CARD>"}', True, True)
