"""Several small real hosts, each warmed with what it can do, through the command line."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.apply.memory import plan_item, plan_table
from tests.targets.tiny_host import MODEL, TinyHost, serving
from warmup_lib.apply import interference, pace
from warmup_lib.cli import main
from warmup_lib.lake import Lake
from warmup_lib.stack.process import free_port

HEADS = [
    replace(
        plan_item("prefixes", n, tenant=f"t{n % 2}"),
        model=MODEL,
        encoder=None,
        text_digest=None,
        system_prompt=f"you help number {n} " + "with many things and more of them " * 6,
    )
    for n in range(1, 9)
]


class Able(TinyHost):
    """A host whose cache holds all heads."""

    def __init__(self) -> None:
        super().__init__()
        self.kv_blocks = 2000


class Plain(TinyHost):
    """An OpenAI-compatible host and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.knows = {"auto tools"}
        self.status = {"/metrics": 404, "/tokenize": 404, "/health": 404}


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", "s" * 32)
    monkeypatch.setattr(interference, "POLL_S", 0.05)
    monkeypatch.setattr(pace, "_SILENCE_S", 0.1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake((tmp_path / "lake").as_uri())
    lake.replace("plan", {"plan_id": "p1"}, plan_table(HEADS), {"day": "2026-03-14"})
    return lake


@pytest.fixture
def hosts() -> Iterator[dict[str, TinyHost]]:
    with ExitStack() as stack:
        made: dict[str, TinyHost] = {"able": Able(), "plain": Plain()}
        yield {name: stack.enter_context(serving(host)) for name, host in made.items()}


def apply(lake: Lake, urls: dict[str, str], *arguments: str, **settings: Any) -> Result:
    path = Path(lake.root).parent / "warmup.yaml"
    targets = [
        {"kind": "host", "name": name, "url": url, "cache_salt": "derived"}
        for name, url in urls.items()
    ]
    limits = {"attempts": 2, "ready_timeout": "1s", **settings}
    path.write_text(yaml.safe_dump({"lake": lake.uri, "targets": targets, "apply": limits}))
    arguments = ("apply", "--plan", "p1", "--config", str(path), *arguments)
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def told(result: Result) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def test_a_host_gets_what_it_can_have_and_its_limits_are_told(
    lake: Lake, hosts: dict[str, TinyHost]
) -> None:
    result = apply(lake, {name: host.url for name, host in hosts.items()}, "--json")
    assert result.exit_code == 0
    facts = told(result)
    counts = facts["completion"]["prefixes"]
    assert {name: c["done"] for name, c in counts.items()} == {"able": 8, "plain": 8}
    for host in hosts.values():
        sent = {m["content"] for r in host.requests for m in r["messages"] if m["role"] == "system"}
        rendered = {" ".join(map(str, r["prompt"])) for r in host.prefills}
        assert len(sent) == 8 or len(rendered) > 8
    able, plain = facts["abilities"]["able"], facts["abilities"]["plain"]
    assert all(able[what] for what in ("tokenize", "cached_tokens", "salt", "priority"))
    assert not any(plain[what] for what in ("tokenize", "render", "cached_tokens", "priority"))
    [note] = [n for n in facts["notes"] if "less able" in n]
    assert note.startswith("target 'plain' is less able than others: it gives no token ids")
    assert "reports no cached tokens" in note
    assert "knows no cache_salt" in note
    assert "knows no priorities" in note
    assert facts["interference"]["plain"]["sees_load"] is False


def test_a_model_that_no_host_serves_is_named_with_the_remedy(
    lake: Lake, hosts: dict[str, TinyHost]
) -> None:
    urls = {name: host.url for name, host in hosts.items()}
    hosts["plain"].models = ["another"]
    result = apply(lake, urls, "--json")
    assert (result.exit_code, told(result)["not_ready"]) == (0, [])  # the other host has all

    hosts["able"].models = ["tiny-instruct"]
    result = apply(lake, {"able": hosts["able"].url}, "--json")
    assert result.exit_code == 1
    facts = told(result)
    why = f"the host does not serve '{MODEL}'"
    assert facts["not_ready"] == [{"target": "able", "layer": "prefixes", "reason": why}]
    [note] = [n for n in facts["notes"] if "does not serve" in n]
    assert note == (
        f"target 'able' does not serve '{MODEL}', and can't have 8 of layer prefixes: it serves "
        "'tiny-instruct'. Where it serves the same under another name, give it in `targets` the "
        f"line `models: {{{MODEL}: NAME}}`"
    )


def test_the_table_of_what_each_layer_took_is_printed(
    lake: Lake, hosts: dict[str, TinyHost]
) -> None:
    result = apply(lake, {"able": hosts["able"].url})
    assert result.exit_code == 0
    table = result.output[result.output.index("What each layer took") :]
    row = next(line for line in table.splitlines() if "prefixes" in line)
    assert [cell.strip() for cell in row.split("│")][1:4] == ["prefixes", "able", "8"]
    assert float([cell.strip() for cell in row.split("│")][4]) > 0


def test_a_dead_host_never_stops_the_others_and_the_exit_code_says_so(
    lake: Lake, hosts: dict[str, TinyHost]
) -> None:
    urls = {"dead": "http://127.0.0.1:1", "able": hosts["able"].url}
    result = apply(lake, urls, "--json")
    assert result.exit_code == 1
    facts = told(result)
    assert facts["unavailable"] == [{"target": "dead", "reason": "no connection"}]
    assert facts["completion"]["prefixes"]["able"]["completion"] == 1.0
    assert facts["completion"]["prefixes"]["dead"]["failed"] == 8
    resumed = apply(lake, urls | {"dead": hosts["plain"].url}, "--json", "--resume")
    assert resumed.exit_code == 0
    facts = told(resumed)
    assert (facts["warmed"], facts["kept"]) == (8, 8)


def test_a_host_that_is_started_a_second_after_the_trigger_is_waited_for(
    lake: Lake, hosts: dict[str, TinyHost]
) -> None:
    port, late = free_port(), Able()
    over = threading.Event()

    def start() -> None:
        time.sleep(1.0)
        with serving(late, port):
            over.wait(30)

    thread = threading.Thread(target=start)
    thread.start()
    urls = {"late": f"http://127.0.0.1:{port}", "able": hosts["able"].url}
    try:
        result = apply(lake, urls, "--json", ready_timeout="30s")
    finally:
        over.set()
        thread.join()
    assert result.exit_code == 0
    facts = told(result)
    offset = facts["readiness"]["late"]
    assert offset["waited"]
    assert 500 < offset["ready_after_ms"] < 5000
    assert not facts["readiness"]["able"]["waited"]
    assert facts["completion"]["prefixes"]["late"]["completion"] == 1.0
    assert any("'late' was not ready when warming was triggered" in n for n in facts["notes"])


def test_a_host_that_refuses_everything_is_given_up_with_the_reason(
    lake: Lake, hosts: dict[str, TinyHost]
) -> None:
    hosts["plain"].status["/v1/chat/completions"] = 500
    result = apply(lake, {"plain": hosts["plain"].url, "able": hosts["able"].url}, "--json")
    assert result.exit_code == 1
    assert "secret words" not in result.output
    why = "a plain request gets HTTP 500: error inside the host"
    assert told(result)["unavailable"] == [{"target": "plain", "reason": why}]
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    found = {(row["target"], row["status"], row["error"]) for row in rows}
    assert found == {("plain", "failed", why), ("able", "warmed", None)}


def test_too_short_a_window_exits_1_and_names_the_host(lake: Lake) -> None:
    class Slow(Able):
        def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            time.sleep(0.4)
            return super().complete(body)

    with serving(Slow()) as slow:
        settings = {"window": "2s", "concurrency": 1, "interference": {"rate": 4.0}}
        result = apply(lake, {"slow": slow.url}, "--json", **settings)
    assert result.exit_code == 1
    facts = told(result)
    assert facts["window_over"] == ["slow"]
    counts = facts["completion"]["prefixes"]["slow"]
    assert counts["missing"] > 0 == counts["failed"]
    assert facts["unavailable"] == []


def test_every_field_of_the_abilities_is_json(lake: Lake, hosts: dict[str, TinyHost]) -> None:
    facts = told(apply(lake, {"able": hosts["able"].url}, "--json"))
    assert set(facts["abilities"]["able"]) >= {"block_size", "kv_tokens", "render"}
    assert asdict(HEADS[0])["layer"] in facts["layers"]
