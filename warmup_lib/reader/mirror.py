"""A share of the traffic, copied to a bounded stream on the Redis for whoever replays it."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import redis.asyncio as aio
from redis.exceptions import RedisError

from warmup_lib.bypass import Headers, joined
from warmup_lib.keys import KEY_VERSION

MIRROR = f"{KEY_VERSION}:mirror"
"""Key of the stream; an entry has the fields `method`, `headers` and `body`."""

MIRRORED = ("cache-control", "content-type", "x-adapter", "x-tenant", "x-user-segment")
"""Headers that are copied: none that holds a login, a cookie or an address."""

_LENGTH = 10_000
_TIMEOUT_S = 0.25


class Mirror:
    """Copies requests; what goes wrong on the way costs the copy and nothing else.

    Args:
        url: The Redis.
        share: Share of the requests that are copied, drawn for each.
    """

    def __init__(self, url: str, share: float) -> None:
        self._share = share
        timeouts = {"socket_timeout": _TIMEOUT_S, "socket_connect_timeout": _TIMEOUT_S}
        self._redis: Any = aio.from_url(url, protocol=2, **timeouts)

    async def copy(self, method: str, headers: Headers, body: Any) -> None:
        """Copy one request, or don't, as the draw has it.

        Args:
            method: Its HTTP method.
            headers: Its headers, a repeated one as the reader takes it.
            body: Its body, as JSON holds it.
        """
        if random.random() >= self._share:
            return
        said = joined(headers)
        kept = {name: said[name] for name in MIRRORED if name in said}
        fields = {"method": method, "headers": json.dumps(kept), "body": json.dumps(body)}
        with suppress(RedisError, OSError):
            await self._redis.xadd(MIRROR, fields, maxlen=_LENGTH, approximate=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
