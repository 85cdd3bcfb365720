"""How a host was asked: before it was ready, under another adapter, or with another salt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.explain.made import KEYS, NOON, PLACES, QUESTION, SERVED, asked, miss
from warmup_lib.causes import Cause
from warmup_lib.evidence import Evidence
from warmup_lib.explain.hosts import Hosts, salt_digest
from warmup_lib.explain.known import Known

KNOWN = Known(frozenset({"acme", "globex"}), {}, frozenset({"cards-lora"}))
LORA = SERVED["cards-lora"]
RIGHT = salt_digest(KEYS.salt("acme"))


def told(evidence: Evidence | None, adapter: str | None = None, layer: str = "prefixes") -> Any:
    one = asked(replace(QUESTION, adapter=adapter))
    hosts = Hosts(PLACES, KNOWN, {"salted"})
    found = [
        hosts.settle([miss(one, layer=layer, target=target, evidence=evidence)])[0]
        for target in ("salted", "plain")
    ]
    return tuple(verdict.cause if verdict else None for verdict in found)


@pytest.mark.parametrize(
    ("evidence", "salted", "plain"),
    [
        (Evidence(salt=RIGHT), None, None),
        (Evidence(salt=RIGHT, host_ready=True, host_epoch=str(NOON.timestamp() - 1)), None, None),
        (
            Evidence(salt=RIGHT, host_epoch=f"{NOON.timestamp() + 0.3}"),
            Cause.HOST_NOT_READY,
            Cause.HOST_NOT_READY,
        ),
        (Evidence(salt=RIGHT, host_epoch="unknown"), None, None),
        (Evidence(), Cause.KEY_TENANT, None),
        (Evidence(salt=salt_digest(KEYS.salt("globex"))), Cause.KEY_TENANT, None),
        (Evidence(salt=salt_digest(KEYS.salt("acme", LORA))), Cause.KEY_ADAPTER, None),
        (Evidence(salt=salt_digest("session 7")), Cause.KEY_DIMENSION, None),
        (
            Evidence(salt=salt_digest(KEYS.other("c0ffee").salt("acme")), template="c0ffee"),
            Cause.KEY_TEMPLATE,
            None,
        ),
        (Evidence(salt=RIGHT, adapter=LORA), Cause.KEY_ADAPTER, Cause.KEY_ADAPTER),
        (None, None, None),
    ],
)
def test_what_the_gateway_saw_of_the_host_tells(evidence: Any, salted: Any, plain: Any) -> None:
    assert told(evidence) == (salted, plain)
    assert told(evidence, layer="responses") == (None, None)


def test_an_adapter_goes_by_its_served_name() -> None:
    right = salt_digest(KEYS.salt("acme", LORA))
    assert told(Evidence(salt=right, adapter=LORA), "cards-lora") == (None, None)
    logged = Evidence(salt=right, adapter="cards-lora")
    assert told(logged, "cards-lora") == (Cause.KEY_ADAPTER,) * 2
    named = Evidence(salt=salt_digest(KEYS.salt("acme", "cards-lora")))
    assert told(named, "cards-lora") == (Cause.KEY_ADAPTER, None)
