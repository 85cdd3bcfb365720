"""Heads that tests plan, and the requests that ask for them."""

from __future__ import annotations

from typing import Any

from tests.layers.building import (
    DictVectors,
    context,
    demand,
    head,
    items,
    lookup,
)
from tests.targets.tiny_host import BLOCK, MODEL
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, Lookup, PlanItem
from warmup_lib.layers.prefixes import Prefixes

LAYER = Prefixes()
SYSTEM = " ".join(f"rule{n} applies" for n in range(40))
WHOLE = (80 + 2) // BLOCK * BLOCK  # two more words: the roles of the system and user message
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"b": 1, "a": 2}}}]


def planned(keys: Keys, tenant: str = "acme", system: str = SYSTEM, **more: Any) -> list[PlanItem]:
    shape = {"model": MODEL, **more}
    return items(LAYER, demand(heads=[head(keys, tenant, system, **shape)]))


def bare(keys: Keys, **more: Any) -> Context:
    return context(keys, DictVectors(), **more)


def asked(keys: Keys, tenant: str, text: str, system: str = SYSTEM, **more: Any) -> Lookup:
    return lookup(keys, tenant, text, system_prompt=system, **{"model": MODEL, **more})
