"""Two chats share an answer only where a model sees the same, and always where it does."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.keys.chats import Messages, changed, chats, seen
from tests.keys.reader import HARMLESS, apart
from tests.keys.strategies import KEYS, PUBLISHED
from warmup_lib.keys import SAMPLING_DEFAULTS
from warmup_lib.messages import split
from warmup_lib.reader import request_of

HOSTS = json.loads(Path(__file__).with_name("hosts.json").read_text(encoding="utf-8"))
APART = {"messages", "model", "tools", "max_completion_tokens"}
"""Members of a body that have a place of their own in a key, or another name there."""


def answer(messages: Messages, **members: Any) -> str:
    body = {"model": "m", "messages": messages, **members}
    return KEYS.identity(request_of("acme", body)).response


@settings(max_examples=400)
@given(chats, st.data())
def test_two_chats_share_an_answer_only_where_a_model_sees_the_same(
    chat: Messages, data: st.DataObject
) -> None:
    other = data.draw(changed(chat) | chats)
    assert (answer(chat) == answer(other)) is (seen(chat) == seen(other))


@settings(max_examples=300)
@given(chats)
def test_a_second_implementation_takes_chats_apart_alike(chat: Messages) -> None:
    assert split(chat)._asdict() == apart(chat)


@given(chats, st.randoms(use_true_random=False))
def test_what_says_the_same_is_one_chat(chat: Messages, luck: Any) -> None:
    same = []
    for message in chat:
        other = {"name": None, "tool_calls": [], "audio": {}, **message}
        if isinstance(message.get("content"), str):
            other["content"] = [{"text": message["content"], "type": "text"}]
        names = list(other)
        luck.shuffle(names)
        same.append({name: other[name] for name in names})
    assert answer(same, user="u", stream=True, tools=[]) == answer(chat)


def say(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


USER, ANSWER, RULE = say("user", "q"), say("assistant", "a"), say("system", "In French.")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([RULE, USER, ANSWER, USER], [USER, ANSWER, RULE, USER]),
        ([RULE, USER], [USER, RULE]),
        ([say("system", [text("x"), image("1")]), USER], [say("system", "x"), USER]),
        ([RULE | {"name": "a"}, USER], [RULE | {"name": "b"}, USER]),
        (
            [say("user", [text("cat:"), image("1"), text("dog:"), image("2")])],
            [say("user", [image("1"), text("cat:"), image("2"), text("dog:")])],
        ),
        (
            [say("user", [text("a"), image("1"), text("b\nc")])],
            [say("user", [text("a\nb"), image("1"), text("c")])],
        ),
        ([{"role": "user", "prompt": True}, ANSWER, say("user", "X")], [say("user", "X"), ANSWER]),
        (
            [{"role": "user", "prompt": True}, ANSWER, say("user", "X")],
            [{"role": "user", "prompt_": True}, ANSWER, say("user", "X")],
        ),
        ([say("user", "X", prompt=True), ANSWER], [say("user", "X"), ANSWER]),
    ],
)
def test_chats_that_a_model_can_tell_apart(one: Messages, other: Messages) -> None:
    assert seen(one) != seen(other)
    assert answer(one) != answer(other)


@pytest.mark.parametrize("case", PUBLISHED["chats"])
def test_the_published_chats(case: dict[str, Any]) -> None:
    messages = case["messages"]
    expected = {name: case[name] for name in ("system_prompt", "history", "prompt")}
    assert split(messages)._asdict() == apart(messages) == expected


# -- what hosts know in a chat ------------------------------------------------------------------


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_of_each_member_of_a_chat_it_is_known_whether_it_changes_answers(host: str) -> None:
    known = set(SAMPLING_DEFAULTS) | HARMLESS | APART
    assert set(HOSTS[host]) - known == set()


def test_no_member_is_said_to_change_answers_and_not_to() -> None:
    assert HARMLESS & set(SAMPLING_DEFAULTS) == set()
    assert {"user", "metadata", "stream", "cache_salt", "request_id"} <= HARMLESS


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_changes_no_answer_splits_no_key(name: str) -> None:
    assert answer([USER], **{name: "said"}) == answer([USER])


@pytest.mark.parametrize("name", ["documents", "regex", "lora_path", "web_search_options"])
def test_what_a_host_answers_from_splits_keys(name: str) -> None:
    assert (
        len({answer([USER]), answer([USER], **{name: ["A"]}), answer([USER], **{name: "B"})}) == 3
    )


@pytest.mark.host
@pytest.mark.usefixtures("stack_host")
def test_the_list_holds_every_member_that_the_installed_vllm_knows(stack_artifacts: Path) -> None:
    [found] = stack_artifacts.glob("host-venv/lib/*/site-packages/vllm/" + PROTOCOL)
    [request] = [
        node
        for node in ast.parse(found.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "ChatCompletionRequest"
    ]
    names = {
        node.target.id
        for node in request.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert {name for name in names if not name.startswith("_")} == set(HOSTS["vLLM 0.32.0"])


PROTOCOL = "entrypoints/openai/chat_completion/protocol.py"
