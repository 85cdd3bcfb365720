"""Signs of traffic that is no plain demand: our own warm-up, health checks, ways round a cache.

A wrong health mark would hide real demand, so only signs that no user's request has are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from warmup_lib.bypass import by_header, by_parameter, truthy

_OWN_ID = "warmup-"
_OWN_HEADER = "x-warmup"
_HEALTH_ROUTE = re.compile(
    r"/(?:health|healthz|health_check|healthcheck|health/\w+|livez?|liveness|readyz?|readiness|ping)/?",
    re.IGNORECASE,
)
_PROBES = re.compile(
    r"kube-probe/|GoogleHC/|ELB-HealthChecker/|Blackbox[ -]Exporter|Amazon-Route53-Health|"
    r"HealthCheck/|UptimeRobot|Pingdom|Consul Health Check|Envoy/HC",
    re.IGNORECASE,
)
_PROBE_TEXTS = frozenset(
    {"ping", "health", "healthcheck", "health check", "health-check", "test from litellm"}
)
_PROBE_TOKENS = 10


def headers(*sources: Any) -> dict[str, Any]:
    """Return the entries of all sources that are mappings, names in lower case."""
    return {
        str(name).casefold(): value
        for source in sources
        if isinstance(source, Mapping)
        for name, value in source.items()
    }


def is_warmup(ids: Iterable[str | None], found: Mapping[str, Any], field: Any = None) -> bool:
    """Return whether a request is our own.

    Args:
        ids: Ids that the sender could choose.
        found: Headers and metadata, names in lower case.
        field: The log's own `warmup` field.
    """
    return (
        truthy(field)
        or truthy(found.get(_OWN_HEADER))
        or any(i is not None and i.startswith(_OWN_ID) for i in ids)
    )


def is_health(prompt: str, max_tokens: Any, route: Any = None, user_agent: Any = None) -> bool:
    """Return whether a request is a health check.

    A probe's text alone is not enough (people type "ping" too): the answer must also be
    limited to a few tokens.
    """
    if isinstance(route, str) and _HEALTH_ROUTE.fullmatch(route.split("?")[0]):
        return True
    if isinstance(user_agent, str) and _PROBES.search(user_agent):
        return True
    return (
        isinstance(max_tokens, int)
        and max_tokens <= _PROBE_TOKENS
        and prompt.strip(" .!?").casefold() in _PROBE_TEXTS
    )


def goes_round(cache_control: Any, *settings: Mapping[str, Any], pragma: Any = None) -> bool:
    """Return whether a request asked to go round the caches.

    Args:
        cache_control: The header.
        settings: Places where a request can carry `skip_cache` and its like.
        pragma: The header that older clients send in its place.
    """
    return by_header(cache_control, pragma) or by_parameter(*settings)


def cache_control(*sources: Any) -> str | None:
    """Return the cache-control of request and answer as one text; None: neither has any.

    An answer may not be kept where either side forbids it, so nobody needs to know which one did.

    Args:
        sources: Headers' values; what is no text is left out.
    """
    return ", ".join(s for s in sources if isinstance(s, str) and s) or None
