"""What a host says of the models it serves and of the engines that serve them side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warmup_lib.targets.host import ModelHost

RANK_HEADER = "X-data-parallel-rank"
"""Names the engine that a request goes to, by its place among the host's engines, from 0."""

_ENGINE = re.compile(r'^vllm:num_requests_running\{[^}]*engine="([^"]*)"', re.MULTILINE)
_SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{7,})/?$")


@dataclass(frozen=True)
class Served:
    """A model as its host lists it.

    Attributes:
        root: Folder or hub name that it was loaded from; None: not told.
        context: Most tokens of prompt and answer together; None: not told.
    """

    root: str | None
    context: int | None

    @property
    def revision(self) -> str | None:
        """The commit that a folder of the Hugging Face cache is named by; None: not told."""
        found = _SNAPSHOT.search(self.root or "")
        return found[1] if found else None


async def served_models(host: ModelHost) -> dict[str, Served]:
    """Return what a host serves, by name.

    Raises:
        ConfigError: The host refuses the key.
        HostUnavailable: No answer.
        RequestRefused: It has no list.
    """
    response = await host.send("GET", "/v1/models")
    host.check(response)
    with host.shape():
        return {
            str(card["id"]): Served(card.get("root"), card.get("max_model_len"))
            for card in response.json()["data"]
        }


async def engines(host: ModelHost) -> int:
    """Return how many engines serve a host's requests, each with weights of its own.

    Raises:
        HostUnavailable: No answer.
    """
    return max(1, len(set(_ENGINE.findall(await host.metrics()))))
