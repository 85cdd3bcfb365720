from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from samples import parameters, texts
from samples.generate import generate
from samples.shipped import Shipped

Row = dict[str, Any]

REQUIRED = {"request_id": str, "ts": str, "tenant": str, "model": str, "prompt": str}
OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "system_prompt": str,
    "messages": list,
    "tools": list,
    "model_revision": str,
    "adapter": str,
    "user_segment": str,
    "session_id": str,
    "locale": str,
    "intent": str,
    "ab_arm": str,
    "ab_score": float,
    "params": dict,
    "cache_control": str,
    "skip_cache": bool,
    "response": str,
    "status": int,
    "prompt_tokens": int,
    "completion_tokens": int,
    "cached_tokens": int,
    "ttft_ms": float,
    "latency_ms": float,
    "served_from": str,
    "chunk_ids": list,
    "warmup": bool,
    "extra": dict,
}


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    found = []
    for hash_seed in ("1", "4711"):
        out = tmp_path / hash_seed
        command = [sys.executable, "-m", "samples", "--out", str(out), "--scale", "0.01"]
        subprocess.run(
            [*command, "--days", "3"],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        found.append(digests(out))
    assert found[0] == found[1]
    assert {"manifest.json", "requests-2026-03-04.jsonl.gz", "docs/codeforge/numpy.where.md"} < set(
        found[0]
    )


def test_five_other_seeds_give_other_logs_of_the_same_kind(tmp_path: Path) -> None:
    seen = set()
    for seed in range(1, 6):
        out = tmp_path / str(seed)
        counts = generate(out, Shipped(), seed=seed, days=2, scale=0.02)["counts"]
        seen.add(digests(out)["requests-2026-03-05.jsonl.gz"])
        assert 100 < counts["rows"] < 400
        assert set(counts["tenant"]) == set(texts.TENANTS)
    assert len(seen) == 5


def test_every_row_is_canonical(rows: list[Row]) -> None:
    for row in rows:
        assert row.keys() <= REQUIRED.keys() | OPTIONAL.keys()
        for name, kind in REQUIRED.items():
            assert isinstance(row[name], kind), name
            assert row[name], name
        for name, kinds in OPTIONAL.items():
            if (value := row.get(name)) is not None:
                assert isinstance(value, kinds), name
                assert isinstance(value, bool) == (kinds is bool), name
        assert row["ts"].endswith("Z")
        assert datetime.fromisoformat(row["ts"]).utcoffset() is not None
        assert row["model"] == parameters.MODEL
        assert not row["request_id"].startswith("warmup-")


def test_messages_agree_with_prompt_and_system_prompt(asked: list[Row]) -> None:
    turns = [row for row in asked if row["messages"]]
    assert 0.1 < len(turns) / len(asked) < 0.2
    for row in turns:
        roles = [message["role"] for message in row["messages"]]
        assert roles in (
            ["system", "user", "assistant", "user"],
            ["system", "user", "assistant", "user", "assistant", "user"],
        )
        assert row["messages"][0]["content"] == row["system_prompt"]
        assert row["messages"][-1]["content"] == row["prompt"]


def test_rows_lie_in_their_day_in_order_of_time(log: Path) -> None:
    names = sorted(path.name for path in log.glob("requests-*.jsonl.gz"))
    assert names[0] == "requests-2026-03-04.jsonl.gz"
    assert names[-1] == "requests-2026-03-17.jsonl.gz"
    assert len(names) == 14
    for name in names:
        with gzip.open(log / name, "rt", encoding="utf-8") as file:
            stamps = [json.loads(line)["ts"] for line in file]
        assert {stamp[:10] for stamp in stamps} == {name[9:19]}
        assert stamps == sorted(stamps)


def test_tenants_have_their_shares(asked: list[Row]) -> None:
    counts = Counter(row["tenant"] for row in asked)
    for name, shape in parameters.SHAPES.items():
        assert counts[name] / len(asked) == pytest.approx(shape.share, rel=0.25), name


def test_size_follows_the_scale(asked: list[Row]) -> None:
    wanted = parameters.REQUESTS_PER_DAY * 14 * 0.1
    assert len(asked) == pytest.approx(wanted, rel=0.15)


def test_six_languages_are_spoken(asked: list[Row]) -> None:
    share = {k: n / len(asked) for k, n in Counter(row["locale"] for row in asked).items()}
    assert set(share) == {"en", "de", "fr", "es", "zh", "ja"}
    assert share["zh"] > 0.1
    assert min(share.values()) > 0.02


def test_a_retry_repeats_id_and_content(rows: list[Row]) -> None:
    by_id = defaultdict(list)
    for row in rows:
        by_id[row["request_id"]].append(row)
    repeated = [found for found in by_id.values() if len(found) > 1]
    assert 0.003 < len(repeated) / len(rows) < 0.02
    for first, second in repeated:
        assert second["ts"] > first["ts"]
        assert first | {"ts": ""} == second | {"ts": ""}


def test_health_checks_come_every_four_hours(rows: list[Row]) -> None:
    probes = {row["request_id"] for row in rows if row["extra"].get("health_check")}
    assert len(probes) == 5 * 6 * 14


def test_shares_of_what_later_work_needs(asked: list[Row]) -> None:
    def share(test: Any) -> float:
        return sum(1 for row in asked if test(row)) / len(asked)

    assert 0.85 < share(lambda r: r["response"]) < 0.95
    assert 0.01 < share(lambda r: r["cache_control"] == "no-cache" or r["skip_cache"]) < 0.05
    assert 0.004 < share(lambda r: "personal_looking" in r["extra"]) < 0.02
    assert share(lambda r: r["status"] == 200) > 0.98
    assert share(lambda r: r["adapter"]) > 0.2
    assert share(lambda r: r["chunk_ids"]) > 0.1
    assert share(lambda r: r["ab_arm"]) > 0.1
    assert {r["served_from"] for r in asked} == {None, "responses"}
    assert {r["user_segment"] for r in asked} == {"premium_vip", "standard", "trial"}


def test_code_is_asked_about_in_three_languages(asked: list[Row]) -> None:
    for fence in ("```python", "```javascript", "```go"):
        assert sum(fence in row["prompt"] for row in asked) > 20


def test_equal_requests_get_equal_answers(asked: list[Row]) -> None:
    answers = defaultdict(set)
    for row in asked:
        if row["response"]:
            key = json.dumps(
                [
                    row[name]
                    for name in ("tenant", "system_prompt", "messages", "prompt", "model_revision")
                ]
            )
            answers[key].add(row["response"])
    assert {len(found) for found in answers.values()} == {1}
    assert len(answers) < len(asked) * 0.85


def test_answers_are_short(asked: list[Row]) -> None:
    assert max(len((row["response"] or "").split()) for row in asked) < 120


def test_the_model_is_released_for_one_tenant_only(asked: list[Row]) -> None:
    days = defaultdict(set)
    for row in asked:
        days[row["tenant"], row["model_revision"]].add(row["ts"][8:10])
    assert min(days["lanting-shop", "r2"]) == "12"
    assert max(days["lanting-shop", "r1"]) == "11"
    assert {tenant for tenant, revision in days if revision == "r2"} == {"lanting-shop"}


def test_chunk_ids_are_in_the_documents(log: Path, asked: list[Row]) -> None:
    used = {(row["tenant"], chunk) for row in asked for chunk in row["chunk_ids"] or ()}
    assert len(used) > 50
    assert {tenant for tenant, _ in used} == {"codeforge", "hearth-home"}
    written = {
        folder.name: "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
        for folder in (log / "docs").iterdir()
    }
    for tenant, chunk in used:
        assert f"<!-- {chunk} -->" in written[tenant]


def test_manifest_says_what_it_is(log: Path, rows: list[Row]) -> None:
    manifest = json.loads((log / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["composed"] is True
    assert manifest["source"] == "shipped"
    assert manifest["counts"]["rows"] == len(rows)
    assert sum(manifest["counts"]["rows_by_day"]) == len(rows)
    assert manifest["parameters"]["ZIPF_EXPONENT"] == parameters.ZIPF_EXPONENT


def test_manifest_tells_suggested_questions_from_typed_ones(log: Path, asked: list[Row]) -> None:
    manifest = json.loads((log / "manifest.json").read_text(encoding="utf-8"))
    first = [row for row in asked if not row["messages"]]
    assert set(manifest["suggested"]) == set(texts.TENANTS)
    found = [row["prompt"] in manifest["suggested"][row["tenant"]] for row in first]
    # a few were typed, and are written a little differently
    assert sum(found) / len(found) == pytest.approx(parameters.PRESSED * 0.97, abs=0.04)
