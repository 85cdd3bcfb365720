"""Chats that hypothesis draws, and what a model sees of one, told without any rule of the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.keys.reader import NONE, WHITE, canonical

Messages = list[dict[str, Any]]

# Few values, so that two chats are often one but for a place, a role or a member.
_texts = st.sampled_from(["a", "b", "a\nb", "a\n\nb", "A", "a  b", "", " ", "\uff41"])
_parts = (
    _texts
    | st.builds(lambda text: {"type": "text", "text": text}, _texts)
    | st.builds(lambda text: {"type": "input_text", "text": text}, _texts)
    | st.builds(
        lambda url: {"type": "image_url", "image_url": {"url": url}}, st.sampled_from(["1", "2"])
    )
    | st.just({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}})
    | st.sampled_from([{"type": None, "text": "a"}, {"type": "refusal", "refusal": "a"}, {}])
)
_contents = _texts | st.lists(_parts, max_size=4) | st.none()
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "user", "assistant", "tool"])},
    optional={
        "content": _contents,
        "name": st.sampled_from([None, "", "x", "y"]),
        "prompt": st.sampled_from([None, True, [True], [[True]], False, 0, "x", []]),
        "prompt_": st.just(True),
        "tool_calls": st.sampled_from([None, [], [{"id": "1"}]]),
    },
)
chats = st.lists(messages, min_size=1, max_size=5).filter(lambda chat: _asked(chat) is not None)
"""Chats that ask something."""


@st.composite
def changed(draw: st.DrawFn, chat: Messages) -> Messages:
    """Another chat that is nearly this one."""
    other = [dict(message) for message in chat]
    at = draw(st.integers(0, len(other) - 1))
    to = draw(st.integers(0, len(other) - 1))
    match draw(st.sampled_from(["move", "parts", "join", "take", "put", "drop", "say"])):
        case "move":
            other.insert(to, other.pop(at))
        case "parts" if isinstance(parts := other[at].get("content"), list):
            other[at]["content"] = draw(st.permutations(parts))
        case "join" if isinstance(parts := other[at].get("content"), list):
            other[at]["content"] = "\n".join(_words(part) or "" for part in parts)
        case "take":
            other[at] |= draw(messages)
        case "put":
            other.insert(at, draw(messages))
        case "drop":
            other[at].pop(draw(st.sampled_from(["name", "prompt", "content"])), None)
        case _:
            other[at]["content"] = draw(_contents)
    return other if _asked(other) is not None else chat


def seen(chat: Messages) -> tuple[str, list[dict[str, Any]]]:
    """Return what a model sees: the instructions at the beginning, and all messages after them."""
    first = next((i for i, m in enumerate(chat) if not _instructs(m)), len(chat))
    begun = "\n\n".join(filter(None, (_text(m) for m in chat[:first])))
    asked = _asked(chat)
    return canonical(begun), [_whole(m, i == asked) for i, m in enumerate(chat) if i >= first]


def _whole(message: Mapping[str, Any], asked: bool) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        only = _words(content[0]) if len(content) == 1 and _is_bare(content[0]) else None
        if asked and all(_words(part) is not None for part in content):
            only = _text(message)
        content = content if only is None else only
    if isinstance(content, str):
        content = canonical(content)
    elif content:
        content = [_canonical(part) for part in content]
    told = {**message, "content": content}
    # True and 1 are equal in Python, and so are false and 0: not in JSON.
    return {name: repr(value) for name, value in told.items() if value not in NONE}


def _canonical(part: Any) -> Any:
    if isinstance(part, str):
        return canonical(part)
    return {k: canonical(v) if k == "text" else v for k, v in part.items()}


def _is_bare(part: Any) -> bool:
    return _words(part) is not None and not (isinstance(part, dict) and "cache_control" in part)


def _instructs(message: Mapping[str, Any]) -> bool:
    if message["role"] not in ("system", "developer"):
        return False
    content = message.get("content")
    besides = [value for name, value in message.items() if name not in ("role", "content")]
    parts: Sequence[Any] = content if isinstance(content, list) else []
    return all(v in NONE for v in besides) and all(_words(part) is not None for part in parts)


def _asked(chat: Messages) -> int | None:
    at = [i for i, m in enumerate(chat) if m["role"] == "user" and _text(m).strip(WHITE)]
    return at[-1] if at else None


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else content
    return "\n".join(word for part in parts if (word := _words(part)) is not None)


def _words(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text")
    return text if part.get("type") in ("text", "input_text") else None
