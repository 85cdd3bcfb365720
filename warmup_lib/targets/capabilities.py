"""What a model host can do, found with a few short requests and from no version string."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warmup_lib.errors import HostUnavailable
from warmup_lib.targets import metrics
from warmup_lib.targets.chat import WARM_TEXT, Chat, Head, RequestRefused, own

if TYPE_CHECKING:
    import httpx

    from warmup_lib.targets.host import ModelHost


@dataclass(frozen=True)
class Capabilities:
    """What a host can do, found from what it answers and not from its version.

    Attributes:
        tokenize: `/tokenize` gives a chat's token ids.
        render: `/v1/chat/completions/render` gives them.
        token_prompts: `/v1/completions` takes a prompt of token ids.
        cached_tokens: A repeated prompt is reported as taken from the cache.
        salt: `cache_salt` keeps equal prompts apart.
        priority: Requests may carry a priority.
        block_size: Tokens in a cache block: only whole blocks are kept.
        kv_tokens: Tokens the cache holds; None: the host does not say.
    """

    tokenize: bool
    render: bool
    token_prompts: bool
    cached_tokens: bool
    salt: bool
    priority: bool
    block_size: int
    kv_tokens: int | None

    def lacks(self) -> tuple[str, ...]:
        """Return in words what the host can't do, and what that means for warming it."""
        said = {
            "it gives no token ids, so that heads are sent whole and not counted beforehand": (
                self.render or self.tokenize
            ),
            "it reports no cached tokens, so that warm heads can't be proven": self.cached_tokens,
            "it knows no cache_salt, so that tenants share what it keeps": self.salt,
            "it knows no priorities, so that warming queues with live requests": self.priority,
        }
        return tuple(words for words, able in said.items() if not able)


async def find_capabilities(host: ModelHost) -> Capabilities:
    """Ask a host what it can do.

    Raises:
        HostUnavailable: It does not answer, or serves no model.
    """
    models = sorted(await host.served())
    if not models:
        raise HostUnavailable(host.name, "it serves no model")
    model = next((m for m in models if m in host.own_models), models[0])
    body = {"model": model, "messages": [{"role": "user", "content": WARM_TEXT}]}
    tokenize = await host.send("POST", "/tokenize", json=body)
    render = await host.send("POST", "/v1/chat/completions/render", json=body)
    known = _ids(render, "token_ids") or _ids(tokenize, "tokens")
    size = metrics.cache_size(await host.metrics())
    # Two tokens a word at least: two whole blocks, which a repeated prompt finds again.
    text = " ".join(f"word {n}" for n in range(size.block))
    chat = Chat(Head(model, None), text, headers=own("capabilities"))
    first, second = uuid.uuid4().hex, uuid.uuid4().hex
    salts = await _accepts(host, replace(chat, salt=first))
    again = await host.chat(replace(chat, salt=first) if salts else chat)
    other = await host.chat(replace(chat, salt=second)) if salts else again
    return Capabilities(
        tokenize=bool(_ids(tokenize, "tokens")),
        render=bool(_ids(render, "token_ids")),
        token_prompts=await _takes_ids(host, model, known),
        cached_tokens=bool(again.cached_tokens),
        salt=bool(again.cached_tokens) and not other.cached_tokens,
        priority=host.takes_priority,
        block_size=size.block,
        kv_tokens=size.tokens,
    )


def _ids(response: httpx.Response, field: str) -> list[int]:
    """Return the token ids of an answer; empty: it has none."""
    try:
        ids = response.json()[field] if response.status_code == 200 else []
    except (ValueError, KeyError, TypeError):
        return []
    return ids if isinstance(ids, list) else []


async def _takes_ids(host: ModelHost, model: str, ids: list[int]) -> bool:
    if not ids:
        return False
    body = {"model": model, "prompt": ids, "max_tokens": 1, "temperature": 0}
    headers = own("capabilities")
    response = await host.send("POST", "/v1/completions", json=body, headers=headers)
    return response.status_code == 200


async def _accepts(host: ModelHost, chat: Chat) -> bool:
    """Say whether a salt is accepted; either way the prompt is cached afterwards."""
    try:
        await host.chat(chat)
    except RequestRefused:
        await host.chat(replace(chat, salt=None))
        return False
    return True
