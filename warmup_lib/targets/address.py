"""Whether a target's address can be one, judged before anything is sent; no secret is repeated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import httpx
import redis.asyncio as aio
from redis.exceptions import RedisError

from warmup_lib.errors import ConfigError

_UNREADABLE = (
    "the url can't be parsed: look at its host and port, and whether its password is "
    "percent-encoded (%2F for /, %5B for [, %23 for #, %3F for ?, %40 for @)"
)
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


def check_redis_url(name: str, url: str) -> None:
    """Raise what is wrong with the address of a Redis.

    Args:
        name: The target's configured name.
        url: The address.

    Raises:
        ConfigError: It has another scheme, can't be parsed, has an option that the client does not
            know, a database that is no number, or names a file that is not there.
    """
    if not url.lower().startswith(("redis://", "rediss://", "unix://")):
        raise _wrong(name, "the url must begin with redis://, rediss:// or unix://")
    with _parsing(name):
        parts = _split(url)
        if parts.query:
            parse_qs(parts.query, strict_parsing=True)
        pool = aio.ConnectionPool.from_url(url)
    database = "" if parts.scheme == "unix" else parts.path.strip("/")
    # The client would take another word for database 0.
    if database and not (database.isascii() and database.isdecimal()):
        raise _wrong(name, _UNREADABLE if "@" in database else "its database is no number")
    _check_options(name, parts, pool)
    for option in _FILES:
        file = pool.connection_kwargs.get(option)
        if file and not os.path.exists(file):  # noqa: PTH110 - false where a folder is closed to us
            raise _wrong(name, f"{option} names a file that is not there: {file}")


def check_host_url(name: str, url: str) -> None:
    """Raise what is wrong with the address of a model host.

    Args:
        name: The target's configured name.
        url: The address.

    Raises:
        ConfigError: It has another scheme, or can't be parsed.
    """
    if not url.startswith(("http://", "https://")):
        raise _wrong(name, "the url must begin with http:// or https://")
    with _parsing(name):
        if not _split(url).hostname:
            raise ValueError
        httpx.URL(url)


def check_key(name: str, variable: str, key: str) -> None:
    """Raise that a key can't be sent.

    Args:
        name: The target's configured name.
        variable: Environment variable that holds the key.
        key: The key.

    Raises:
        ConfigError: It has characters that no header may have.
    """
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise _wrong(
            name,
            f"the key in {variable} holds a character that no key has: not ASCII, a line break, "
            "or a space at its ends",
        )


def _split(url: str) -> SplitResult:
    """Return the parts of an address.

    Raises:
        ValueError: It has a control character, no such port, or no such host name.
    """
    if any(char < " " or char == "\x7f" for char in url):  # else they are dropped in silence
        raise ValueError
    parts = urlsplit(url)
    if parts.port == 0 or parts.fragment:
        raise ValueError
    (parts.hostname or "").encode("idna")
    return parts


def _check_options(name: str, parts: SplitResult, pool: Any) -> None:
    try:
        pool.make_connection()
    except TypeError:
        # After a raw ? the rest of a password would look like options.
        if "@" in parts.query:
            raise _wrong(name, _UNREADABLE) from None
        options = ", ".join(sorted(parse_qs(parts.query)))
        scheme = parts.scheme
        raise _wrong(name, f"not each option in the url is one of {scheme}://: {options}") from None
    except (RedisError, ValueError):
        raise _wrong(name, "an option in the url has a value that it can't have") from None


@contextmanager
def _parsing(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, httpx.InvalidURL):
        raise _wrong(name, _UNREADABLE) from None


def _wrong(name: str, what: str) -> ConfigError:
    return ConfigError(f"target '{name}': {what}")
