"""What docs/reader.md shows runs as it is there, against a real Redis."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shlex
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

from warmup_lib.cli import main
from warmup_lib.cli.lookup import lookup
from warmup_lib.evidence import FIELD, Evidence
from warmup_lib.reader import Computed, log_row

PAGE = (Path(__file__).parents[2] / "docs" / "reader.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.stack


def blocks(kind: str) -> list[str]:
    return [block for named, block in BLOCK.findall(PAGE) if named == kind]


class Answer:
    """What the page's model says."""

    text, complete = "In the app.", True


def test_the_python_of_the_page_runs_and_the_second_request_hits(redis_url: str) -> None:
    first, compute, row = blocks("python")
    first = first.replace("rediss://cache:6380/0", redis_url)
    body = first + "request = request_of(tenant, body)\n" + compute + row
    calls: list[Any] = []

    async def call_the_model(asked: Any) -> Answer:
        calls.append(asked)
        return Answer()

    log = io.StringIO()
    given: dict[str, Any] = {
        "secret": b"a secret of the page",
        "tenant": f"acme-{uuid4().hex}",
        "body": {"model": "m", "messages": [{"role": "user", "content": "How do I pay?"}]},
        "headers": {"x-request-id": "7"},
        "encode": lambda _: [1.0] + [0.0] * 511,
        "call_the_model": call_the_model,
        "arrived": datetime(2026, 3, 14, tzinfo=UTC),
        "usage": {"prompt_tokens": 5},
        **{"ttft_ms": 3.0, "latency_ms": 4.0, "epoch": "e", "salt_digest": "0" * 16, "log": log},
        **{"Computed": Computed, "log_row": log_row, "uuid4": uuid4, "json": json},
    }
    whole = "async def page():\n" + textwrap.indent(body, "    ") + "\n    await reader.close()\n"
    exec(compile(whole, "docs/reader.md", "exec"), given)
    assert asyncio.run(given["page"]()) is None
    [logged] = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (logged["response"], logged["prompt_tokens"]) == ("In the app.", 5)
    evidence = Evidence.from_dict(logged[FIELD])
    assert [(one.layer, one.found) for one in evidence.looked][:2] == [
        ("embeddings", "absent"),
        ("responses", "absent"),
    ]
    assert evidence.host == "gpu-1"
    served = whole.replace("return found.answer", "return await reader.close() or found.answer")
    exec(compile(served, "docs/reader.md", "exec"), given)
    assert asyncio.run(given["page"]()) == "In the app."
    assert len(calls) == 1


def test_the_commands_of_the_page_run(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = {"kind": "redis", "name": "cache", "url": redis_url}
    (tmp_path / "warmup.yaml").write_text(json.dumps({"targets": [target]}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARMUP_SECRET", "s" * 32)
    commands = [
        line.removeprefix("$ warmup ") for block in blocks("sh") for line in block.split("\n")
    ]
    ran = [CliRunner().invoke(main, shlex.split(one)) for one in commands if one]
    assert [done.exit_code for done in ran] == [0]
    assert "Lookup: not found" in ran[0].output
    shown = set(re.findall(r"`(--[a-z-]+)", PAGE))
    known = {name for option in lookup.params for name in option.opts}
    assert shown - {"--factory", "--format"} <= known
