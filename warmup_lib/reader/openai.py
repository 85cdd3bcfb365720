"""From the body of an OpenAI-style chat request to what its keys are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.keys import Request
from warmup_lib.messages import split

_OWN = frozenset({"messages", "model", "tools"})


def request_of(
    tenant: str,
    body: Mapping[str, Any],
    *,
    adapter: str | None = None,
    model_revision: str | None = None,
) -> Request:
    """Return the request of a chat body, its messages taken apart as the log's are.

    Args:
        tenant: Who asks.
        body: Model, messages, tools; what else it holds are parameters.
        adapter: The adapter, by its name in the log.
        model_revision: Revision of the model, where the log has one.

    Raises:
        InputDataError: It has no model, or its messages can't be taken apart.
    """
    model, messages, tools = body.get("model"), body.get("messages"), body.get("tools")
    if not isinstance(model, str) or not model.strip():
        raise InputDataError("the body must name a model")
    if not isinstance(messages, list):
        raise InputDataError("the body must hold a list of messages")
    if tools is not None and not isinstance(tools, list):
        raise InputDataError("the tools of a request must be a list")
    talk = split(messages)
    return Request(
        tenant,
        model,
        talk.prompt,
        talk.system_prompt,
        talk.history,
        tools,
        model_revision,
        adapter,
        {name: value for name, value in body.items() if name not in _OWN},
    )
