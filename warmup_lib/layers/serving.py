"""Which adapters the configured hosts serve, as far as the settings say: the plan asks no host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config, HostTarget

if TYPE_CHECKING:
    from collections.abc import Iterable

UNSERVED = "adapter_not_served"
"""Why a head or an answer to generate is left out: no host target names its adapter in `models`."""


def served_adapters(config: Config) -> set[str]:
    """Return the adapters that a host target names in `models`."""
    hosts: Iterable[Any] = [] if config.targets == "embedded" else config.targets
    return {name for host in hosts if isinstance(host, HostTarget) for name in host.models}


def unserved(adapters: Any, config: Config) -> Any:
    """Return a mask over a column of adapters: true where there is one that no host serves."""
    known = pa.array(sorted(served_adapters(config)), pa.string())
    return pc.invert(pc.or_(pc.is_null(adapters), pc.is_in(adapters, value_set=known)))
