"""The later traffic that a plan is judged on: which requests count, and as what."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Lookup


@dataclass(frozen=True)
class Window:
    """Requests that asked the caches, by time of arrival.

    Attributes:
        name: Partition of `hits`: the day; of a log file its days and a digest of its requests, so
            that it is never taken for a day, nor for another file.
        rows: Rows of `requests` that asked the caches; ours and health checks are not in it.
        around: Rows of `requests` that went round the caches: neither hit nor miss.
        own: Rows of our own traffic and health checks, which are no demand.
        in_sample: Some of it lies on or before the plan's last day, so that the plan knew it.
        whole_day: It is one day, whole, as far as the lake knows.
    """

    name: str
    rows: pa.Table
    around: pa.Table
    own: int
    in_sample: bool
    whole_day: bool

    @property
    def meta(self) -> dict[str, bool]:
        """What of it is kept with a partition that was made from it."""
        return {"whole_day": self.whole_day, "in_sample": self.in_sample}

    @property
    def bypassed(self) -> int:
        """Requests that went round the caches."""
        return int(self.around.num_rows)

    @property
    def bypass_share(self) -> float:
        """Bypassed requests among all that are demand."""
        demand = self.rows.num_rows + self.bypassed
        return self.bypassed / demand if demand else 0.0


def plan_day(lake: Lake, plan_id: str) -> str:
    """Return the last log day that a plan took in.

    Raises:
        InputDataError: The plan does not say it.
    """
    manifest = lake.manifest("plan", {"plan_id": plan_id})
    if manifest is None or "day" not in manifest.meta:
        raise InputDataError(f"plan {plan_id} does not say which day it was made for: rebuild it")
    return str(manifest.meta["day"])


def open_window(
    lake: Lake, plan_id: str, config: Config, keys: Keys, day: str | None, requests: Path | None
) -> Window | None:
    """Return the traffic of a day or of a log file, which is not stored; None: neither is given.

    Raises:
        InputDataError: Both are given, or there is no usable request.
    """
    if day is not None and requests is not None:
        raise InputDataError("give a day or a requests file, not both")
    if day is not None:
        return from_lake(lake, day, plan_day(lake, plan_id))
    if requests is None:
        return None
    from warmup_lib.ingest.reader import read_requests

    rows = read_requests([requests], "auto", config, keys)
    return from_rows(rows, config, plan_day(lake, plan_id))


def from_lake(lake: Lake, day: str, last_day: str) -> Window:
    """Return the requests of one day of the lake.

    Raises:
        InputDataError: The lake has no requests of that day.
    """
    if lake.manifest("requests", {"day": day}) is None:
        days = lake.days("requests")
        known = f"there are {days[0]} to {days[-1]}" if days else "there are none"
        raise InputDataError(f"no requests of {day} in the lake; {known}")
    return _window(lake.read("requests", {"day": day}), day, day <= last_day, whole_day=True)


def from_rows(rows: pa.Table, config: Config, last_day: str) -> Window:
    """Return requests that were read from files, under their days and what they ask.

    Raises:
        InputDataError: There are none.
    """
    if not rows.num_rows:
        raise InputDataError("the requests file holds no requests that can be used")
    first, last = (
        config.local_day(edge.as_py()).isoformat() for edge in pc.min_max(rows["ts"]).values()
    )
    days = first if first == last else f"{first}..{last}"
    name = f"{days}-file-{_digest(rows)}"
    return _window(rows, name, first <= last_day, whole_day=False)


def _digest(rows: pa.Table) -> str:
    """Return 12 hex digits that stand for what is asked, in whichever order it was read."""
    asked = rows.select(["ts", *_LOOKUP_COLUMNS])
    asked = asked.sort_by([("tenant", "ascending"), ("request_id", "ascending")])
    digest = hashlib.sha256()
    for row in asked.to_pylist():
        digest.update(repr(tuple(row.values())).encode())
    return digest.hexdigest()[:12]


def _window(rows: pa.Table, name: str, in_sample: bool, *, whole_day: bool) -> Window:
    own = pc.or_(_flag(rows, "warmup"), _flag(rows, "health"))
    demand = rows.filter(pc.invert(own))
    bypass = _flag(demand, "bypass")
    asked = demand.filter(pc.invert(bypass)).sort_by(
        [("ts", "ascending"), ("request_id", "ascending")]
    )
    return Window(
        name=name,
        rows=asked,
        around=demand.filter(bypass),
        own=rows.num_rows - demand.num_rows,
        in_sample=in_sample,
        whole_day=whole_day,
    )


def _flag(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.fill_null(rows[name], False)


_LOOKUP_COLUMNS = (
    "request_id",
    "tenant",
    "model",
    "model_revision",
    "adapter",
    "text_digest",
    "context_digest",
    "response_digest",
    "head_digest",
    "prompt",
    "system_prompt",
    "tools",
    "user_segment",
    "chunk_ids",
)


def lookups(rows: pa.Table) -> list[Lookup]:
    """Return rows of `requests` as a layer looks them up, without vectors."""
    return [Lookup(**row) for row in rows.select(_LOOKUP_COLUMNS).to_pylist()]


def slices(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """Yield consecutive pieces of at most `size` rows."""
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


def take(rows: pa.Table, indices: Sequence[int]) -> pa.Table:
    """Return some rows, in the order given."""
    return rows.take(pa.array(indices, pa.int64()))
