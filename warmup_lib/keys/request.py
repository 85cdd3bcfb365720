"""What of a request can change its answer, each part in its canonical form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.keys.params import is_empty, to_json
from warmup_lib.keys.text import canonical_text

FALLBACK_TENANTS = frozenset(
    {"anon", "anonymous", "default", "empty", "global", "nil", "no-tenant", "none", "null",
     "public", "shared", "tenant", "undefined", "unknown", "unset"}
)  # fmt: skip
"""Names that gateways are known to fall back to where a request names no tenant. They are tenants
like others here: one may be called so."""

_WILDCARDS = re.compile(r"[*?%\s]*")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing: joiners, fillers, variation selectors."""


DIMENSION_FIELDS = ("user_segment", "session_id", "locale", "intent", "ab_arm")
"""Fields of a logged request that can be a `Dimension`, beside what is in its `extra` and `params`
(named `extra.NAME`, `params.NAME`)."""


@dataclass(frozen=True)
class Request:
    """What of a request can change its answer. `history` are the messages between the two.

    Of `dimensions`, only those count that the `Keys` were told of: the fields of a request by
    name, whatever else there is.
    """

    tenant: str
    model: str
    prompt: str
    system_prompt: str | None = None
    history: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Any] | None = None
    model_revision: str | None = None
    adapter: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    dimensions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dimension:
    """A further field of requests that changes answers, because its user says so.

    Attributes:
        default: The value that absence means.
        synonyms: Value -> the value that it stands for.
    """

    default: str = ""
    synonyms: Mapping[str, str] = field(default_factory=dict)

    def value(self, given: Any) -> str:
        """Return the canonical value; the empty string for an absent, empty or default one.

        Raises:
            InputDataError: It can't be written as JSON.
        """
        if is_empty(given):
            return ""
        said = canonical_text(given if isinstance(given, str) else to_json(given))
        meant = self.synonyms.get(said, said)
        return "" if meant == self.default else meant


def field_within(fields: Any, name: str) -> Any:
    """Return what a name such as `extra.client.device` stands for in a request; None: nothing."""
    if not isinstance(fields, Mapping):
        return None
    if name in fields:
        return fields[name]
    first, _, rest = name.partition(".")
    return field_within(fields.get(first), rest) if rest else None


def check_tenant(tenant: str) -> str:
    """Return the tenant, stripped and in NFC.

    Raises:
        InputDataError: It is empty, a wildcard, or holds a character that can't be seen or has
            no meaning that will stay: two such names look like one.
    """
    if not isinstance(tenant, str):
        raise InputDataError("a tenant is needed: it is a text")
    return _checked_tenant(tenant)


@lru_cache(maxsize=4096)
def _checked_tenant(tenant: str) -> str:
    name = unicodedata.normalize("NFC", tenant).strip()
    if _WILDCARDS.fullmatch(name):
        raise InputDataError("a tenant is needed: it may be neither empty nor a wildcard")
    for character in name:
        if unicodedata.category(character) in _UNSEEN or _FILLERS.match(character):
            raise InputDataError(
                f"a tenant may not hold U+{ord(character):04X}: control, invisible, private and "
                "unassigned characters are refused"
            )
    return name


def canonical_history(history: Sequence[Mapping[str, Any]]) -> str:
    """Return messages as JSON, their texts canonical, without empty members.

    Raises:
        InputDataError: A message is no object, or can't be written as JSON.
    """
    if not all(isinstance(message, Mapping) for message in history):
        raise InputDataError("every message of a history must be an object")
    return to_json([_message(message) for message in history])


def canonical_tools(tools: Sequence[Any] | None) -> str:
    """Return tools as a JSON list; empty when there are none.

    Raises:
        InputDataError: They are no list, or can't be written as JSON.
    """
    if is_empty(tools):
        return ""
    if not isinstance(tools, list | tuple):
        raise InputDataError("the tools of a request must be a list")
    return to_json(tools)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    members = {**message, "content": _content(message.get("content"))}
    return {name: value for name, value in members.items() if not is_empty(value)}


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return canonical_text(content)
    return [_part(part) for part in content] if isinstance(content, list | tuple) else content


def _part(part: Any) -> Any:
    if isinstance(part, str):
        return canonical_text(part)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": canonical_text(part["text"])}
    return part
