from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.keys import Keys, Request
from warmup_lib.messages import BadMessages, Conversation, split

CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "42"}
TEXT_PART = {"type": "text", "text": "what is it?"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://pictures.test/1.png"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def rebuild(talk: Conversation) -> list[dict[str, Any]]:
    """The list a host would be sent, as docs/requests.md describes it."""
    messages = [dict(m) for m in talk.history]
    places = [i for i, m in enumerate(messages) if m.get("prompt") is True]
    if not places:
        messages.append(user(talk.prompt))
    for at in places:
        del messages[at]["prompt"]
        messages[at].setdefault("content", talk.prompt)
    return ([system(talk.system_prompt)] if talk.system_prompt else []) + messages


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("hi")], (None, "hi", [])),
        ([system("be kind"), user("hi")], ("be kind", "hi", [])),
        (
            [system("a"), {"role": "developer", "content": "b"}, user("hi")],
            ("a\n\nb", "hi", []),
        ),
        (
            [user("one"), {"role": "assistant", "content": "two"}, user("three")],
            (None, "three", [user("one"), {"role": "assistant", "content": "two"}]),
        ),
        (
            [user("sum?"), CALL, RESULT],
            (None, "sum?", [{"role": "user", "prompt": True}, CALL, RESULT]),
        ),
        (
            [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
            (None, "a\nb", []),
        ),
        (
            [user([TEXT_PART, IMAGE])],
            (None, "what is it?", [user([TEXT_PART, IMAGE]) | {"prompt": True}]),
        ),
        (
            [user([IMAGE, TEXT_PART, IMAGE, TEXT_PART])],
            (
                None,
                "what is it?\nwhat is it?",
                [user([IMAGE, TEXT_PART, IMAGE, TEXT_PART]) | {"prompt": True}],
            ),
        ),
        (
            [system("a") | {"cache_control": {"type": "ephemeral"}, "name": None}, user("hi")],
            ("a", "hi", []),
        ),
        (
            [system("a"), user("one"), system("now in French"), user("two")],
            ("a", "two", [user("one"), system("now in French")]),
        ),
        (
            [user("hi"), system("be kind")],
            (None, "hi", [{"role": "user", "prompt": True}, system("be kind")]),
        ),
        (
            [system("a"), system("b") | {"name": "x"}, system("c"), user("hi")],
            ("a", "hi", [system("b") | {"name": "x"}, system("c")]),
        ),
        (
            [{"role": "system", "content": [TEXT_PART, IMAGE]}, user("hi")],
            (None, "hi", [{"role": "system", "content": [TEXT_PART, IMAGE]}]),
        ),
        (
            [{"role": "user", "prompt": True}, CALL, user("X")],
            (None, "X", [{"role": "user", "prompt_": True}, CALL]),
        ),
        (
            [user([TEXT_PART]), CALL, user("X")],
            (None, "X", [user("what is it?"), CALL]),
        ),
        ([user("hi") | {"name": "", "tool_calls": []}], (None, "hi", [])),
        (
            [user("look"), user([IMAGE])],
            (None, "look", [{"role": "user", "prompt": True}, user([IMAGE])]),
        ),
        ([user([IMAGE]), user("look")], (None, "look", [user([IMAGE])])),
        (
            [user("real"), user("  ")],
            (None, "real", [{"role": "user", "prompt": True}, user("  ")]),
        ),
    ],
)
def test_split(messages: list[Any], expected: tuple[Any, ...]) -> None:
    assert tuple(split(messages)) == expected


@pytest.mark.parametrize(
    ("given_prompt", "history"),
    [
        ("now", [user("before"), user("now")]),  # repeats the last user text
        ("now ", [user("before"), user("now")]),
        ("now", [user("before")]),  # what came before it
    ],
)
def test_a_prompt_beside_the_list(given_prompt: str, history: list[Any]) -> None:
    talk = split(history, prompt=given_prompt)
    assert (talk.prompt.strip(), talk.history) == ("now", [user("before")])


def test_a_system_prompt_beside_the_list_comes_first_and_once() -> None:
    messages = [system("be kind"), system("be brief"), user("hi")]
    assert split(messages, system_prompt="be kind").system_prompt == "be kind\n\nbe brief"


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (["hi"], "bad_messages"),
        ([{"content": "hi"}], "bad_messages"),
        ([{"role": 1, "content": "hi"}], "bad_messages"),
        ([user(5)], "bad_messages"),
        ([user([5])], "bad_messages"),
        ([user({"text": "hi"})], "bad_messages"),
        ([system("only")], "empty_prompt"),
        ([user(" \n")], "empty_prompt"),
        ([user([IMAGE])], "empty_prompt"),
    ],
)
def test_malformed_lists(messages: list[Any], reason: str) -> None:
    with pytest.raises(BadMessages) as verdict:
        split(messages)
    assert (verdict.value.reason, verdict.value.field) == (reason, "messages")


TEXT = st.text("ab ", min_size=1).filter(str.strip)
MESSAGE = st.one_of(
    st.builds(user, TEXT),
    st.builds(lambda t: user([{"type": "text", "text": t}, IMAGE]), TEXT),
    st.just(user([IMAGE])),
    st.builds(lambda t: {"role": "assistant", "content": t}, TEXT),
    st.builds(system, TEXT),
    st.just(CALL),
    st.just(RESULT),
)


@settings(deadline=None)
@given(st.lists(MESSAGE, max_size=6), TEXT, st.lists(MESSAGE, max_size=3))
def test_nothing_of_a_conversation_is_lost(before: list[Any], text: str, after: list[Any]) -> None:
    messages = [system("s"), user("start"), *before, user(text), *after]
    assert rebuild(split(messages)) == messages


@settings(deadline=None)
@given(st.lists(MESSAGE, min_size=1, max_size=4), st.lists(MESSAGE, min_size=1, max_size=4))
def test_two_conversations_have_two_identities(one: list[Any], other: list[Any]) -> None:
    keys = Keys(b"a secret of the tests")

    def identity(messages: list[Any]) -> str:
        talk = split([user("start"), *messages])
        request = Request("acme", "m", talk.prompt, talk.system_prompt, talk.history)
        return keys.identity(request).response

    def folded(messages: list[Any]) -> list[Any]:
        return [
            {**m, "content": m["content"].strip()} if isinstance(m["content"], str) else m
            for m in messages
        ]

    if folded(one) != folded(other):
        assert identity(one) != identity(other)


@pytest.mark.parametrize("kind", [[], {}, 5, True])
def test_a_part_whose_type_is_no_text_is_malformed(kind: Any) -> None:
    with pytest.raises(BadMessages) as verdict:
        split([user([{"type": kind, "text": "x"}])])
    assert (verdict.value.reason, verdict.value.field) == ("bad_messages", "messages")
