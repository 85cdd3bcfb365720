"""How much of a layer the plan takes, and how much it leaves to what traffic writes there itself.

Only where the application writes too: elsewhere the plan is all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.forecast.advice import advice
from warmup_lib.forecast.backtest import backtest
from warmup_lib.forecast.trace_lake import lake_trace
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, silent

_PERIOD = timedelta(days=1)  # a plan is made once a day
_FEWEST = 3  # periods without which no way to run a cache is better than another by more than luck


@dataclass(frozen=True)
class Reserve:
    """What the backtest says of one layer.

    Attributes:
        items: Most items that the log's own demand may choose of it; 0: do not warm it.
        says: Why, in a sentence.
    """

    items: int
    says: str


def reserves(
    lake: Lake, days: Sequence[str], config: Config, progress: Progress = silent
) -> dict[str, Reserve]:
    """Return by layer what to reserve, where traffic writes the same cache.

    A cache of as many items as the layer may hold, LRU by itself, is run over the history with
    plans made once a day (`warmup backtest --layer responses --period 1d --fixed-plans`).

    Args:
        lake: The lake.
        days: The history, ISO dates.
        config: The settings.
        progress: Told how far the backtest is.
    """
    if not config.layers.responses.gateway_writes or len(days) < _FEWEST:
        return {}
    capacity = config.layers.responses.items
    try:
        trace = lake_trace(lake, days, "responses")
    except InputDataError:
        return {}
    done = backtest(
        trace, capacity, _PERIOD, config.zone, ["lru"], renewed=False, progress=progress
    )
    plan = advice(done.field, done.outcome, trace, done.periods, capacity)
    return {"responses": Reserve(plan["items"], plan["says"])}
