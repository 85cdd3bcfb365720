"""Which adapters the hosts will serve, as far as settings and plan say: the plan asks no host."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config, HostTarget
from warmup_lib.layers.adapters import Adapters
from warmup_lib.layers.demand import Demand

UNSERVED = "adapter_not_served"
"""Why a head or an answer to generate is left out: no host target names its adapter in `models`,
and its folder is not known, or it is beyond the adapter slots."""


def named_adapters(config: Config) -> set[str]:
    """Return the adapters that a host target names in `models`."""
    hosts: Iterable[Any] = [] if config.targets == "embedded" else config.targets
    return {name for host in hosts if isinstance(host, HostTarget) for name in host.models}


def planned_adapters(demand: Demand, config: Config) -> set[str]:
    """Return the adapters that a plan of this demand loads: the most asked for, one a slot."""
    if not config.layers.adapters.enabled:
        return set()
    candidates = Adapters().candidates(demand, config)
    asked = candidates.filter(pc.greater(candidates["heat_micro"], 0)).sort_by(
        [("heat_micro", "descending"), ("key_digest", "ascending"), ("item_id", "ascending")]
    )
    return set(asked["adapter"].to_pylist()[: config.layers.adapters.items])


def unserved(adapters: Any, config: Config, loaded: Collection[str]) -> Any:
    """Return a mask over a column of adapters: true where there is one that no host serves.

    Args:
        adapters: Adapters as in the log.
        config: The settings.
        loaded: The adapters that the plan loads.
    """
    known = pa.array(sorted(named_adapters(config) | set(loaded)), pa.string())
    return pc.invert(pc.or_(pc.is_null(adapters), pc.is_in(adapters, value_set=known)))
