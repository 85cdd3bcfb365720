"""How a request tells the caches to stand aside: one rule for the log, the doctor and the reader.

Ids such as X-Request-ID say nothing about that, and no key holds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_AROUND = re.compile(
    r"(?<![\w-])(?:no-(?:cache|store)(?![\w-])|max-age\s*=\s*\"?0+(?!\d))", re.IGNORECASE
)
Headers = Mapping[Any, Any] | Iterable[tuple[Any, Any]]
"""Headers of a request, or their pairs; either may name one twice."""

_FALSE = frozenset({"", "0", "false", "no", "none", "null", "off"})


def truthy(value: Any) -> bool:
    """Return whether a flag is set; `"false"`, `"0"`, `"no"` and their like are not."""
    return value.strip().casefold() not in _FALSE if isinstance(value, str) else bool(value)


def joined(headers: Headers) -> dict[str, str]:
    """Return headers, names in lower case, the values of a repeated one joined by commas.

    That is what HTTP says a repeated header means.

    Args:
        headers: Texts or bytes, as servers have them; what is neither is left out.
    """
    found: dict[str, str] = {}
    for pair in headers.items() if isinstance(headers, Mapping) else headers:
        name, value = map(_text, pair)
        if name is not None and value is not None:
            name = name.casefold()
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def pragma_in(extra: Mapping[str, Any]) -> str | None:
    """Return the header `pragma` in the further fields of a log row; None: it has none.

    Args:
        extra: The fields, where headers lie under `headers` or `metadata`, maybe those of a body.
    """
    for place in map(extra.get, ("metadata", "headers", "body")):
        if isinstance(place, Mapping):
            found = joined(place).get("pragma") or pragma_in(place)
            if found:
                return found
    return None


def _text(held: Any) -> str | None:
    if isinstance(held, bytes):
        return held.decode("latin-1")
    return held if isinstance(held, str) else None


def by_header(cache_control: Any, pragma: Any = None) -> bool:
    """Return whether a header says so: `no-cache`, `no-store` or `max-age=0`.

    Args:
        cache_control: Value of `cache-control`; what is no text says nothing.
        pragma: Value of `pragma`, which older clients send in its place.
    """
    return any(isinstance(said, str) and _AROUND.search(said) for said in (cache_control, pragma))


def by_parameter(*places: Mapping[str, Any]) -> bool:
    """Return whether a parameter says so.

    Args:
        places: Where a request can carry `skip_cache`, `disable_cache` or `cache_enabled`.
    """
    return any(
        truthy(place.get("skip_cache"))
        or truthy(place.get("disable_cache"))
        or (place.get("cache_enabled") is not None and not truthy(place["cache_enabled"]))
        for place in places
    )
