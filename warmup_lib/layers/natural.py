"""What traffic keeps warm by itself: it is not worth warming, but for a start from cold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.tables import MICRO

KEPT_WARM = "kept_warm"
"""Why a candidate is left out: requests for it come before what the last one left is gone."""

_DAY_US = timedelta(days=1).total_seconds() * MICRO


def kept_warm(heat: Any, ttl: timedelta, config: Config) -> Any:
    """Return a mask: true where traffic keeps an entry and the early window does not need it.

    Traffic keeps what is asked for at least once in its lifetime (rate x lifetime >= 1). The early
    window needs what is expected to be asked for in it, for the target may be cold by then.

    Args:
        heat: Expected requests a day in millionths, as a column without nulls.
        ttl: How long an entry lives after it was written or used last.
        config: The settings.
    """
    window = config.plan.early_window or timedelta(0)
    often, early = (
        pc.greater_equal(pc.multiply(pc.cast(heat, pa.float64()), span.total_seconds()), _DAY_US)
        for span in (ttl, window)
    )
    return pc.and_not(often, early)
