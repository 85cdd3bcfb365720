"""What an apply warmed is what the command shows that an application would find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from warmup_lib.cli import main
from warmup_lib.stack.state import StackState

pytestmark = pytest.mark.stack
QUESTION = "How do I block my card?"
SYSTEM = "Answer in one sentence."


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def config(stack_redis: StackState, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Settings whose Redis holds what a plan of one day's log put there."""
    folder = tmp_path_factory.mktemp("lookup")
    assert stack_redis.redis is not None
    file = folder / "warmup.yaml"
    target = {"kind": "redis", "name": "cache", "url": stack_redis.redis.url}
    file.write_text(json.dumps({"lake": (folder / "lake").as_uri(), "targets": [target]}))
    row: dict[str, Any] = {"tenant": "acme-lookup", "model": "m", "prompt": QUESTION}
    row |= {"response": "In the app.", "system_prompt": SYSTEM, "params": {"temperature": 0.2}}
    rows = [
        {**row, "request_id": f"r{n}", "ts": f"2026-03-04T10:{n:02d}:00Z"}
        | ({"prompt": f"What is new on day {n}?"} if n % 2 else {})
        for n in range(20)
    ]
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("WARMUP_SECRET", "s" * 32)
        patched.setenv("WARMUP_HOME", str(folder / "home"))
        for arguments in (
            ["ingest", "--format", "jsonl", str(log)],
            ["plan", "--day", "2026-03-04"],
            ["apply", "--plan", "latest"],
        ):
            done = run(*arguments, "--config", str(file))
            assert done.exit_code == 0, done.output
        yield file


def look(config: Path, *arguments: str) -> dict[str, Any]:
    done = run("lookup", "--config", str(config), "--json", *arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


ASK = ["--tenant", "acme-lookup", "--model", "m", "--system-prompt", SYSTEM]
WARM = ["--param", "temperature=0.2"]


def test_a_warm_prompt_is_found_with_its_key_and_similarity(config: Path) -> None:
    found = look(config, *ASK, *WARM, QUESTION)
    assert (found["hit"], found["layer"], found["match"]) == (True, "responses", "exact")
    assert found["similarity"] == 1.0
    assert found["key"] == found["evidence"]["looked"][1]["key"]
    assert found["key"].startswith("wu1:")
    assert found["item_id"].startswith("responses-")
    assert [one["found"] for one in found["evidence"]["looked"]] == ["hit", "hit", "hit"]


def test_a_similar_prompt_is_found_by_its_vector(config: Path) -> None:
    found = look(config, *ASK, *WARM, "How do I block my card ?!")
    assert (found["hit"], found["layer"], found["match"]) == (True, "responses", "semantic")
    assert 0.92 <= found["similarity"] < 1.0


def test_other_parameters_leave_the_vector_and_other_tenants_nothing(config: Path) -> None:
    found = look(config, *ASK, "--param", "temperature=0.9", QUESTION)
    assert (found["hit"], found["layer"], found["match"]) == (True, "embeddings", None)
    found = look(config, "--tenant", "other", "--model", "m", QUESTION)
    assert (found["hit"], found["layer"], found["key"], found["similarity"]) == (False, *[None] * 3)


def test_a_header_that_tells_the_caches_to_stand_aside_is_named(config: Path) -> None:
    found = look(config, *ASK, *WARM, "--header", "Cache-Control: no-cache", QUESTION)
    assert (found["hit"], found["bypass"], found["evidence"]["looked"]) == (False, "header", [])


def test_a_table_says_which_look_was_for_what_is_similar_and_what_it_needed(config: Path) -> None:
    done = run("lookup", "--config", str(config), *ASK, *WARM, "Where is the nearest branch?")
    rows = [[c.strip() for c in li.split("│")[1:-1]] for li in done.stdout.splitlines()]
    of_answers = [row[1:3] + row[4:5] for row in rows if row and row[0] == "responses"]
    assert of_answers == [["equal", "absent", "-"], ["similar", "below threshold", "0.920"]]


def test_a_table_for_people_shows_no_text(config: Path) -> None:
    done = run("lookup", "--config", str(config), *ASK, *WARM, QUESTION)
    assert done.exit_code == 0
    assert "found in responses" in done.stdout
    assert "In the app." not in done.stdout
    assert QUESTION not in done.stdout


def test_wrong_usage_and_a_redis_that_is_down(config: Path, tmp_path: Path) -> None:
    def code(*arguments: str, settings: Path = config) -> tuple[int, str]:
        done = run("lookup", "--config", str(settings), "--json", *arguments)
        assert "Traceback" not in done.output
        return done.exit_code, json.loads(done.stdout)["error"]

    assert code("--tenant", "*", "--model", "m", QUESTION)[0] == 2
    assert code(*ASK, "--param", "temperature", QUESTION)[0] == 2
    assert code(*ASK, "--redis", "nosuch", QUESTION)[0] == 2
    tools = tmp_path / "tools.json"
    tools.write_text("{}")
    assert code(*ASK, "--tools", str(tools), QUESTION)[0] == 2
    settings = json.loads(config.read_text())
    settings["targets"][0]["url"] = "redis://127.0.0.1:1/0"
    down = tmp_path / "down.yaml"
    down.write_text(json.dumps(settings))
    status, said = code(*ASK, QUESTION, settings=down)
    assert (status, "not available" in said) == (1, True)
