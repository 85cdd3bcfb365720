"""What the doctor says of a real Redis: tenants in keys and indexes, one answer under many keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from click.testing import CliRunner

from tests.apply.server import Server
from tests.doctor.rows import KEYS, PLACES, rows
from warmup_lib.cli import main
from warmup_lib.doctor import scan
from warmup_lib.keys import Request
from warmup_lib.places import answer_fields
from warmup_lib.search import create_answer_index

pytestmark = pytest.mark.stack

VECTOR = np.ones(8, np.float32).tobytes()


@pytest.fixture(scope="module")
def server(stack_artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis"), stack_artifacts)
    yield server
    server.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    with redis.Redis.from_url(server.url, protocol=2) as client:
        client.flushall()
        for name in client.execute_command("FT._LIST"):
            client.execute_command("FT.DROPINDEX", name)
        yield client


@pytest.fixture
def look(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARMUP_SECRET", "a secret of the tests")

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(main, ["doctor", "--json", "--redis", server.url, *arguments])
        return done.exit_code, json.loads(done.stdout)["traps"]

    return run


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def store(client: Any, key: str, number: int, **fields: str) -> None:
    held = {"prompt": f"question {number}", "response": f"the answer to question {number}"}
    client.hset(key, mapping={**held, "prompt_vector": VECTOR, **fields})


def warm(client: Any, tenant: str, number: int) -> None:
    """Store an answer as the planner does, in the tenant's own index."""
    index = PLACES.answers(tenant)
    if index.encode() not in client.execute_command("FT._LIST"):
        client.execute_command(*create_answer_index(index, 8))
    request = Request(tenant, "m", f"question {number}")
    identity = KEYS.identity(request)
    key = PLACES.answer(request, identity.response)
    fields = answer_fields(key, request.prompt, "yes", VECTOR, identity.context, {}, 1.0)
    client.hset(key, mapping=fields)


def status(traps: dict[str, Any]) -> tuple[str, str]:
    return traps["tenant"]["status"], traps["key_dimensions"]["status"]


def test_an_empty_redis_tells_nothing(client: Any, look: Any) -> None:
    assert client.dbsize() == 0
    code, traps = look()
    assert (code, *status(traps)) == (0, "not_checked", "not_checked")
    assert traps["tenant"]["evidence"] == "the Redis holds no cached answers"


def test_what_the_planner_keeps_is_sound(client: Any, look: Any) -> None:
    for number in range(12):
        warm(client, "acme", number)
        warm(client, "nordwind", number)
    code, traps = look()
    assert (code, *status(traps)) == (0, "ok", "ok")
    assert "could name a tenant: 24 cached answers" in traps["tenant"]["evidence"]


def test_other_data_is_left_alone(client: Any, look: Any) -> None:
    client.rpush("celery", "a task")
    client.set("session:81f0a9c2", "a session", ex=60)
    client.hset("user:17", mapping={"name": "somebody"})
    code, traps = look()
    assert (code, *status(traps)) == (0, "not_checked", "not_checked")


@pytest.mark.parametrize("key", ["llmcache:{}", "llm:cache:{}", "app:llm_cache:v2:{}"])
def test_keys_that_name_no_tenant_are_found(client: Any, look: Any, key: str) -> None:
    for number in range(5):
        store(client, key.format(sha(str(number))), number)
    code, traps = look()
    assert (code, *status(traps)) == (1, "found", "ok")
    assert "could name a tenant: 5 of 5 cached answers" in traps["tenant"]["evidence"]
    assert "Put the tenant into every key" in traps["tenant"]["remedy"]


def test_json_answers_under_bare_hashes_are_found(client: Any, look: Any) -> None:
    message = {"choices": [{"message": {"content": "the answer"}}]}
    for number in range(4):
        held = {"timestamp": 1.0, "response": json.dumps(message | {"id": f"c{number}"})}
        client.set(sha(str(number)), json.dumps(held))
    assert status(look()[1])[0] == "found"


@pytest.mark.parametrize(
    "key", ["cache:tenant:acme:{}", "cache:tenant=acme:{}", "cache:acme-bank:{}"]
)
def test_keys_that_name_a_tenant_are_sound(client: Any, look: Any, key: str) -> None:
    for number in range(5):
        store(client, key.format(sha(str(number))), number)
    assert status(look()[1]) == ("ok", "ok")


def test_with_a_log_a_part_must_be_one_of_its_tenants(
    client: Any, look: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows(40)))
    for number in range(5):
        store(client, f"cache:production:{sha(str(number))}", number)
    assert look()[1]["tenant"]["status"] == "ok"
    assert look("--requests", str(log))[1]["tenant"]["status"] == "found"
    client.flushall()
    for number in range(5):
        store(client, f"cache:production:acme:{sha(str(number))}", number)
    assert look("--requests", str(log))[1]["tenant"]["status"] == "ok"


def test_an_index_over_several_tenants_is_found(client: Any, look: Any) -> None:
    client.execute_command(*create_answer_index("shared", 8))
    for number in range(6):
        store(client, f"shared:{number}", number, tenant=("acme", "nordwind")[number % 2])
    code, traps = look()
    assert (code, traps["tenant"]["status"]) == (1, "found")
    assert "with entries of several tenants: 1 search index" in traps["tenant"]["evidence"]


def test_an_index_is_shared_where_the_log_says_who_asks(
    client: Any, look: Any, tmp_path: Path
) -> None:
    asked = rows(16)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in asked))
    client.execute_command(*create_answer_index("cache:acme", 8))
    for number, row in enumerate(asked[:8]):
        store(client, f"cache:acme:{number}", number, prompt=row["prompt"])
    code, traps = look("--requests", str(log))
    assert (code, traps["tenant"]["status"]) == (1, "found")


def test_dimensions_that_multiply_an_answer_are_named(client: Any, look: Any) -> None:
    for number in range(4):
        for locale in ("en", "de"):
            for device in ("mobile", "desktop"):
                key = f"cache:acme-bank:{locale}:{device}:{sha(str(number))}"
                store(client, key, number)
    code, traps = look()
    assert (code, *status(traps)) == (1, "ok", "found")
    evidence = traps["key_dimensions"]["evidence"]
    assert "keeps 4 answers under 16 keys" in evidence
    assert "locale" in evidence
    assert "device" in evidence


def test_tags_that_multiply_an_answer_are_named(client: Any, look: Any) -> None:
    for number in range(4):
        for user in ("17", "18", "19"):
            key = f"cache:tenant=acme:{sha(user + str(number))}"
            store(client, key, number, user_id=user)
    evidence = look()[1]["key_dimensions"]["evidence"]
    assert evidence == "the Redis keeps 4 answers under 12 keys, by user_id"


def test_one_question_in_two_contexts_is_no_trap(client: Any, look: Any) -> None:
    for number in range(4):
        for context in ("a" * 32, "b" * 32):
            key = f"cache:tenant=acme:{sha(context + str(number))}"
            store(client, key, number, context=context)
    assert status(look()[1]) == ("ok", "ok")


def test_jobs_forms_and_pages_are_no_cached_answers(client: Any, look: Any, tmp_path: Path) -> None:
    for number in range(20):
        job = {"data": b"x", "result": b"y", "status": "finished"}
        client.hset(f"rq:job:{sha(str(number))[:32]}", mapping=job)
        client.hset(f"survey:{number}", mapping={"question": "How are you?", "answer": "fine"})
        client.set(f"cache:page:{number}", json.dumps({"result": "<html>", "status": 200}))
        found = json.dumps({"query": "shoes", "result": [number]})
        client.set(f"cache:search:{sha(str(number))}", found)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows(40)))
    for given in ((), ("--requests", str(log))):
        code, traps = look(*given)
        assert code == 0
        assert "the Redis holds no cached answers" in traps["tenant"]["evidence"]


def test_values_that_no_answer_has_are_read_over(client: Any, look: Any) -> None:
    for name, value in {
        "responses:deep": "[" * 60_000,
        "responses:cut": '{"response": "{1"}',
        "responses:number": '{"response": 5}',
        "responses:list": '["a"]',
        "cache:half": '{"prompt": "\\ud800", "response": "x"}',
    }.items():
        client.set(name, value)
    client.hset("h", mapping={"response": b"\xff\xfe", "prompt": b"\xff"})
    client.xadd("stream", {"response": "x"})
    assert status(look()[1]) == ("ok", "ok")


def test_answers_are_found_among_many_other_keys(client: Any, look: Any) -> None:
    others = {f"sess:{number}": "x" for number in range(30_000)}
    client.mset(others)
    for number in range(50):
        store(client, f"llmcache:{sha(str(number))}", number)
    code, traps = look()
    assert (code, traps["tenant"]["status"]) == (1, "found")
    assert "50 of 50 cached answers" in traps["tenant"]["evidence"]


def test_what_was_not_looked_at_is_not_said_to_be_sound(
    client: Any, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.mset({f"sess:{number}": "x" for number in range(9000)})
    for number in range(300):
        warm(client, "acme", number)
    monkeypatch.setattr(scan, "MOST_NAMES", 3000)
    code, traps = look()
    assert (code, *status(traps)) == (0, "not_checked", "not_checked")
    assert "not all was looked at: " in traps["tenant"]["evidence"]
    monkeypatch.setattr(scan, "MOST_NAMES", 9300)
    assert status(look()[1]) == ("ok", "ok")


def test_of_very_many_answers_a_sample_tells(
    client: Any, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1500):
        client.set(
            f"cache:tenant=acme:{sha(str(number))}", json.dumps({"prompt": "?", "answer": number})
        )
    monkeypatch.setattr(scan, "MOST_KEYS", 1200)
    code, traps = look()
    assert (code, traps["tenant"]["status"]) == (0, "ok")
    assert "up to 0.25% can be others" in traps["tenant"]["evidence"]


def test_a_redis_that_is_down_is_not_checked_and_exits_1(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--json", "--redis", "redis://127.0.0.1:1"])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["traps"]["tenant"] == {
        "status": "not_checked",
        "evidence": "the Redis is down: no connection",
        "remedy": "",
    }
    assert told["down"] == ["the Redis is down: no connection"]
    assert not list(tmp_path.iterdir())
