"""How a request tells the caches to stand aside: one rule for the log, the doctor and the reader.

Ids such as X-Request-ID say nothing about that, and no key holds one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_AROUND = re.compile(r"\bno-(?:cache|store)\b|(?<![\w-])max-age\s*=\s*\"?0+(?!\d)", re.IGNORECASE)
_FALSE = frozenset({"", "0", "false", "no", "none", "null", "off"})


def truthy(value: Any) -> bool:
    """Return whether a flag is set; `"false"`, `"0"`, `"no"` and their like are not."""
    return value.strip().casefold() not in _FALSE if isinstance(value, str) else bool(value)


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
