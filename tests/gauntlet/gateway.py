"""A gateway before the real stack, which can be made to go wrong in one way for one request.

What it writes into the log is what it honestly knows: the keys it asked for, where it sent the
request, and what came back. That it is wrong it does not know.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.gauntlet.corpus import Ask
from tests.gauntlet.world import World, request_of
from warmup_lib.errors import HostUnavailable
from warmup_lib.evidence import FIELD, Evidence
from warmup_lib.keys import Dimension, Identity, Keys, Request, embedding_text
from warmup_lib.reader import Cache, Reader
from warmup_lib.stack.state import Service
from warmup_lib.targets.chat import Chat, ChatResult, Head
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.tokens import prefill


@dataclass(frozen=True)
class Wrong:
    """What is wrong with the gateway for one request; nothing, unless it is said.

    Attributes:
        tenant: It looks under this tenant.
        revision: It keys this revision of the model; empty: none.
        adapter: It asks for the adapter under the logged name with this after it.
        template: It was given another chat template.
        encoder: It embeds with another encoder.
        dimension: It puts this field into the key.
        noted: It notes which fields its keys hold.
        first: It keys the first characters only.
        last: It keys the last characters only.
        raw: It keys the text as it came.
        blind: A route looks nothing up.
        host: It sends the request to this host.
        length: It pads or cuts what it sends to so many tokens.
    """

    tenant: str | None = None
    revision: str | None = None
    adapter: str | None = None
    template: str = ""
    encoder: str | None = None
    dimension: str | None = None
    noted: bool = False
    first: int | None = None
    last: int = 0
    raw: bool = False
    blind: bool = False
    host: str | None = None
    length: int | None = None


FINE = Wrong()


class RawKeys(Keys):
    """Keys of a gateway that forgot to bring texts into their canonical form."""

    def identity(self, request: Request) -> Identity:
        whole = super().identity(request)
        return replace(
            whole,
            text=self.digest("text", request.prompt.casefold()),
            response=self.digest("response", whole.context, request.prompt),
        )


@dataclass
class Gateway:
    """Serves requests and logs them.

    Attributes:
        world: What it stands before.
        log: Its log.
        rows: What it has logged.
    """

    world: World
    log: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    _readers: dict[Any, Reader] = field(default_factory=dict)
    _hosts: dict[str, ModelHost] = field(default_factory=dict)

    async def close(self) -> None:
        for held in (*self._readers.values(), *self._hosts.values()):
            await held.close()

    def write(self) -> Path:
        """Write the log."""
        self.log.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        return self.log

    async def serve(
        self,
        ask: Ask,
        request_id: str,
        wrong: Wrong = FINE,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Serve and log one request."""
        row = ask.row(request_id, datetime.now(UTC))
        evidence = Evidence()
        if not wrong.blind:
            evidence, layer = await self._look(ask, wrong, headers)
            row |= {"served_from": layer} if layer else {}
        if headers and (said := headers.get("cache-control")):
            row["cache_control"] = said
        if wrong.host is not None and "served_from" not in row:
            evidence = await self._forward(ask, wrong, row, evidence)
        row[FIELD] = evidence.to_dict()
        self.rows.append(row)
        return row

    async def _look(
        self, ask: Ask, wrong: Wrong, headers: Mapping[str, str] | None
    ) -> tuple[Evidence, str | None]:
        reader = self._reader(wrong)
        found = await reader.lookup(self._request(ask, wrong), headers=headers)
        evidence = found.evidence
        if wrong.dimension and wrong.noted:
            looked = tuple(
                replace(look, fields=(wrong.dimension,)) if look.layer == "responses" else look
                for look in evidence.looked
            )
            evidence = replace(evidence, looked=looked)
        served_as = reader.cache.places.adapter(ask.adapter)
        return replace(evidence, adapter=served_as), found.layer

    def _request(self, ask: Ask, wrong: Wrong) -> Request:
        request = request_of(ask)
        return replace(
            request,
            tenant=wrong.tenant or request.tenant,
            model_revision=_or(wrong.revision, request.model_revision),
            prompt=request.prompt[-wrong.last :][: wrong.first],
            dimensions=ask.fields.get("extra", {}),
        )

    def _reader(self, wrong: Wrong) -> Reader:
        """Return the reader of a gateway that is wrong in this way."""
        kind = (wrong.template, wrong.encoder, wrong.dimension, wrong.adapter, wrong.raw)
        if kind not in self._readers:
            world, places = self.world, self.world.places
            dimensions = {wrong.dimension: Dimension()} if wrong.dimension else {}
            make = RawKeys if wrong.raw else Keys
            adapters = {
                name: served if wrong.adapter is None else f"{name}{wrong.adapter}"
                for name, served in places.adapters.items()
            }
            self._readers[kind] = Reader(
                Cache(
                    world.redis_url,
                    make(world.secret, wrong.template, dimensions),
                    wrong.encoder or places.encoder,
                    world.encoder.dimension,
                    self._encode,
                    adapters,
                    timeout_s=10.0,
                )
            )
        return self._readers[kind]

    def _encode(self, text: str) -> list[float]:
        [vector] = self.world.encoder.encode([embedding_text(text)])
        return [float(x) for x in vector]

    # -- to a host -------------------------------------------------------------------------------

    def _host(self, service: Service) -> ModelHost:
        if service.url not in self._hosts:
            self._hosts[service.url] = ModelHost(service.name, service.url, cache_salt="derived")
        return self._hosts[service.url]

    async def _forward(
        self, ask: Ask, wrong: Wrong, row: dict[str, Any], evidence: Evidence
    ) -> Evidence:
        service = next(s for s in self.world.hosts if s.name == wrong.host)
        host, places = self._host(service), self.world.places
        adapter = places.adapter(ask.adapter)
        salt = self.world.keys.salt(ask.tenant, adapter)
        evidence = replace(
            evidence,
            host=service.name,
            adapter=adapter,
            salt=hashlib.sha256(salt.encode()).hexdigest()[:16],
        )
        head = Head(row["model"], ask.system_prompt, None, adapter)
        begun = time.perf_counter()
        try:
            await host.ready()
            epoch = await host.epoch()
            if wrong.length is not None:
                answer = await _static(host, head, ask.prompt, salt, wrong.length)
            else:
                chat = Chat(head, ask.prompt, max_tokens=1, salt=salt, low_priority=False)
                answer = await host.chat(chat)
        except HostUnavailable:
            row["status"] = 503
            return replace(evidence, host_ready=False)
        row |= {
            "prompt_tokens": answer.prompt_tokens,
            "cached_tokens": answer.cached_tokens,
            "latency_ms": (time.perf_counter() - begun) * 1000,
        }
        return replace(evidence, host_epoch=epoch, host_ready=True)


def _or(wrong: str | None, right: str | None) -> str | None:
    return right if wrong is None else wrong or None


async def _static(host: ModelHost, head: Head, user: str, salt: str, length: int) -> ChatResult:
    """Send a prompt padded on the left, or cut, to a static length."""
    body = {"model": host.model(head), "messages": head.messages(user)}
    response = await host.send("POST", "/tokenize", json=body)
    tokens = response.json()["tokens"][-length:]
    padded = [tokens[0]] * (length - len(tokens)) + tokens
    return await prefill(host, padded, host.model(head), salt, {})
