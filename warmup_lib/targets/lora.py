"""Adapters on a model host: which are listed, in how many slots, loading, unloading, one token."""

from __future__ import annotations

import math
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from warmup_lib.targets import metrics
from warmup_lib.targets.chat import RequestRefused
from warmup_lib.targets.host import ModelHost

QUIET_S = 10.0
"""An adapter that a request used in this time is in use: more requests for it are likely."""

SAME = 0.01
"""Log-probabilities that differ by less are the same: a host's own rounding moves them too."""

_PROMPT = "The weather in the mountains is"
_TOP = 5

_INFO = re.compile(r"^vllm:lora_requests_info\{([^}]*)\}\s+(\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class NotAtRunTime(RequestRefused):
    """The host loads adapters at its start only."""

    def __init__(self) -> None:
        super().__init__(404, "the host loads no adapters at run time")


@dataclass(frozen=True)
class Listed:
    """An adapter that a host lists; one that was pushed out of its slot is still listed.

    Attributes:
        name: Under which it is asked for.
        root: The folder it was loaded from.
        base: Name of the model that it changes.
    """

    name: str
    root: str
    base: str


@dataclass(frozen=True)
class Slots:
    """A host's room for adapters, and which ones requests use.

    Attributes:
        most: Adapters it can have ready at once; None: it does not say.
        used_s: Adapter -> seconds since a request for it was last waiting or running.
    """

    most: int | None
    used_s: Mapping[str, float]

    def busy(self, name: str) -> bool:
        """Return whether requests use an adapter."""
        return self.used_s.get(name, math.inf) < QUIET_S


async def listed(host: ModelHost) -> dict[str, Listed]:
    """Return the adapters that a host lists, by name.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: It has no list.
    """
    response = await host.send("GET", "/v1/models")
    host.check(response)
    with host.shape():
        cards = response.json()["data"]
        return {
            str(card["id"]): Listed(str(card["id"]), str(card.get("root")), str(card["parent"]))
            for card in cards
            if card.get("parent")
        }


async def slots(host: ModelHost) -> Slots:
    """Return a host's adapter slots, by its metrics.

    It keeps one line for each set of adapters that were in use together, with the time when that
    was last so.

    Raises:
        HostUnavailable: No answer.
    """
    response = await host.send("GET", "/metrics")
    page = response.text if response.status_code == 200 else ""
    now = _clock(response.headers.get("date"))
    most: int | None = None
    used: dict[str, float] = {}
    for labels, value in _INFO.findall(page):
        named = dict(_LABEL.findall(labels))
        if (said := metrics.whole(named.get("max_lora"))) is not None:
            most = said
        if (at := metrics.number(value)) is None:
            continue
        both = f"{named.get('running_lora_adapters', '')},{named.get('waiting_lora_adapters', '')}"
        for name in filter(None, both.split(",")):
            used[name] = max(used.get(name, 0.0), at)
    return Slots(most, {name: now - last for name, last in used.items()})


def _clock(date: str | None) -> float:
    """Return the host's time, by the header of its answer; ours where it has none."""
    try:
        return parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        return time.time()


async def load(host: ModelHost, name: str, folder: str) -> None:
    """Have an adapter listed under a name from a folder.

    Raises:
        HostUnavailable: No answer.
        NotAtRunTime: It loads none at run time.
        RequestRefused: It can't load this one, or has another folder under the name.
    """
    async with host.turn(low_priority=True, tokens=0):
        body = {"lora_name": name, "lora_path": folder}
        response = await host.send("POST", "/v1/load_lora_adapter", json=body)
    if response.status_code == 400:
        # Said of a name that is loaded already, whichever folder that was loaded from.
        there = (await listed(host)).get(name)
        if there is not None and there.root == folder:
            return
        if there is not None:
            raise RequestRefused(400, "its name is loaded from another folder")
    if response.status_code in (404, 405) and not _has_error(response):
        raise NotAtRunTime
    if response.status_code == 404:
        raise RequestRefused(404, "the host finds no adapter at the folder")
    host.check(response)


async def unload(host: ModelHost, name: str) -> None:
    """Take an adapter off the list; requests that run already are finished with it.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: It refuses.
    """
    response = await host.send("POST", "/v1/unload_lora_adapter", json={"lora_name": name})
    if response.status_code != 404:
        host.check(response)


async def first_token(host: ModelHost, model: str, headers: Mapping[str, str]) -> dict[str, float]:
    """Return the likeliest first tokens after a fixed prompt, with their log-probabilities.

    Args:
        host: The host.
        model: A served model or adapter.
        headers: Further headers.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: It refuses the request.
    """
    can = await host.capabilities()
    body: dict[str, Any] = {"model": model, "prompt": _PROMPT, "max_tokens": 1}
    body |= {"temperature": 0, "logprobs": _TOP}
    if can.salt:  # what another request left in the cache may not answer for this model
        body["cache_salt"] = uuid.uuid4().hex

    async def send(extra: Mapping[str, Any]) -> dict[str, float]:
        sent = body | dict(extra)
        response = await host.send("POST", "/v1/completions", json=sent, headers=headers)
        host.check(response)
        with host.shape():
            top = response.json()["choices"][0]["logprobs"]["top_logprobs"][0]
            return {str(token): float(value) for token, value in top.items()}

    async with host.turn(low_priority=True):
        return await host.fitted(send, low_priority=True)


@dataclass(frozen=True)
class Apart:
    """How an adapter's first token differs from that of the model it changes.

    Attributes:
        adapter: Log-probability of the token that differs the most.
        base: The same token's with the model alone.
        gap: Their distance.
        noise: Largest distance between two answers of the model alone.
    """

    adapter: float
    base: float
    gap: float
    noise: float

    @property
    def differs(self) -> bool:
        """Whether the adapter changes the answer, by more than the host changes its own."""
        return self.gap > max(SAME, self.noise)


async def compare(host: ModelHost, adapter: Listed, headers: Mapping[str, str]) -> Apart:
    """Take one token through an adapter, and one before and after through its model alone.

    One after the other: vLLM's CPU build, up to 0.32 at least, lets an adapter change the answers
    of requests for the model alone that share a batch with it (vllm-project/vllm#48421).

    Raises:
        HostUnavailable: No answer.
        RequestRefused: It refuses a request.
    """
    before = await first_token(host, adapter.base, headers)
    own = await first_token(host, adapter.name, headers)
    after = await first_token(host, adapter.base, headers)
    one, base = max(_pairs(own, before), key=_gap)
    return Apart(one, base, _gap((one, base)), max(map(_gap, _pairs(before, after))))


def _pairs(one: Mapping[str, float], other: Mapping[str, float]) -> list[tuple[float, float]]:
    """Return both log-probabilities of each token; one that is not listed has the least listed."""
    least, others_least = min(one.values()), min(other.values())
    return [(one.get(t, least), other.get(t, others_least)) for t in sorted({*one, *other})]


def _gap(pair: tuple[float, float]) -> float:
    return abs(pair[0] - pair[1])


def _has_error(response: Any) -> bool:
    """Return whether an answer names its error as the API does: there is such a path."""
    try:
        return "error" in response.json()
    except ValueError:
        return False
