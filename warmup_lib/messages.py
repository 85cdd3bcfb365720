"""OpenAI-style message lists, taken apart into system prompt, history and last user text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from warmup_lib.errors import InputDataError

_SYSTEM = frozenset({"system", "developer"})
_INSTRUCTIONS = frozenset({"role", "content", "cache_control"})
"""What a system message may hold that is nothing but the system prompt."""

_PLACE = "prompt"
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_BARE = frozenset({"type", "text"})


class BadMessages(InputDataError):
    """A message list can't be taken apart.

    Args:
        reason: It is malformed, or holds no user text.
        field: Its field.
    """

    def __init__(self, reason: Literal["bad_messages", "empty_prompt"], field: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.reason = reason
        self.field = field


class Conversation(NamedTuple):
    """A message list taken apart.

    Lists that a model could tell apart come to the same only where docs/keys.md says so.

    Attributes:
        system_prompt: The system and developer texts that the list begins with, joined by an
            empty line; None when none.
        prompt: Text of the last user message that has text.
        history: Every other message. Where messages follow the last user text, or its message
            holds more than text, that message keeps its place in this list, with `"prompt": true`
            put in. Text that stands alone in it is taken out; text beside an image stays too, as
            where it stands says what it is about.
    """

    system_prompt: str | None
    prompt: str
    history: list[dict[str, Any]]


def split(
    messages: Sequence[Any],
    *,
    system_prompt: str | None = None,
    prompt: str | None = None,
    field: str = "messages",
) -> Conversation:
    """Take a message list apart.

    Args:
        messages: OpenAI-style messages.
        system_prompt: A system prompt given beside the list; it comes first.
        prompt: A user text given beside the list. Unless it repeats the list's last user text,
            the list is what came before it.
        field: The list's field, for the error.

    Raises:
        BadMessages: The list is malformed, or there is no user text.
    """
    checked = [_checked(m, field) for m in messages]
    leading = list(takewhile(_is_instruction, checked))
    systems = [text_of(m) for m in leading]
    if system_prompt:
        systems = [system_prompt, *(text for text in systems if text != system_prompt)]
    spoken = [_told(m) for m in checked[len(leading) :]]
    at = _last_user_text(spoken)
    found = None if at is None else text_of(spoken[at])
    if prompt and prompt.strip() not in ("", (found or "").strip()):
        history = spoken
    elif at is None or found is None:
        raise BadMessages("empty_prompt", field)
    else:
        prompt = found
        rest = _without_text(spoken[at])
        keeps_place = len(rest) > 1 or at + 1 < len(spoken)
        place = [{**rest, _PLACE: True}] if keeps_place else []
        history = [*spoken[:at], *place, *spoken[at + 1 :]]
    return Conversation("\n\n".join(filter(None, systems)) or None, prompt, history)


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message; the texts of a list of parts are joined by newlines."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(t for p in content or () if (t := _part_text(p)) is not None)


def _checked(message: Any, field: str) -> dict[str, Any]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadMessages("bad_messages", field)
    content = message.get("content")
    if isinstance(content, list):
        if not all(_is_part(part) for part in content):
            raise BadMessages("bad_messages", field)
    elif content is not None and not isinstance(content, str):
        raise BadMessages("bad_messages", field)
    return message


def _is_part(part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(part.get("type"), str | None)
    return isinstance(part, str)


def _part_text(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or not _is_part(part):
        return None
    text = part.get("text")
    return text if part.get("type", "text") in _TEXT_PARTS and isinstance(text, str) else None


def _last_user_text(messages: Sequence[Mapping[str, Any]]) -> int | None:
    for index in reversed(range(len(messages))):
        if messages[index]["role"] == "user" and text_of(messages[index]).strip():
            return index
    return None


def _is_instruction(message: Mapping[str, Any]) -> bool:
    """Return whether a message is a system prompt and nothing besides."""
    besides = any(v not in _EMPTY for name, v in message.items() if name not in _INSTRUCTIONS)
    return message["role"] in _SYSTEM and not besides and _is_text(message.get("content"))


def _is_text(content: Any) -> bool:
    return not isinstance(content, list) or all(_part_text(part) is not None for part in content)


def _told(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as the history holds it: one text part is a text.

    A member of the caller's that has our mark's name gets another one.
    """
    told = {f"{k}_" if k.rstrip("_") == _PLACE else k: v for k, v in message.items()}
    content = told.get("content")
    if isinstance(content, list) and len(content) == 1 and _is_bare(content[0]):
        return {**told, "content": _part_text(content[0])}
    return told


def _is_bare(part: Any) -> bool:
    return _part_text(part) is not None and (isinstance(part, str) or part.keys() <= _BARE)


def _without_text(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in message.items() if v not in _EMPTY}
    return {k: v for k, v in kept.items() if k != "content" or not _is_text(v)}
