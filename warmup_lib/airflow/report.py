"""What a task tells Airflow: log lines, XCom, asset events, and the errors that decide on retries.

XCom and logs are read by more people than the lake is, so that only counts and ids leave here.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from typing import Any, NewType

from airflow.sdk import Asset, get_current_context

from warmup_lib.errors import GateFailed, TargetUnavailable
from warmup_lib.stage import StageReport

log = logging.getLogger(__name__)

Facts = NewType("Facts", dict[str, Any])
"""A stage's counts and ids. A type of its own, because Airflow splits what a task annotated as
`dict` returns into one XCom a key."""

_ID = re.compile(r"[A-Za-z0-9._:/=+%@-]{1,200}")
_DEPTH = 3
_EVERY_S = 10.0


class LogProgress:
    """Logs how far a stage is: at most one line every ten seconds, and one when it is done."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Say that `done` of `total` (None: unknown) units of `what` are finished."""
        now = time.monotonic()
        if done != total and now - self._said.get(what, float("-inf")) < _EVERY_S:
            return
        self._said[what] = now
        log.info("%s: %d of %s", what, done, "?" if total is None else total)


def told(report: StageReport) -> Facts:
    """Log a report and return what of it may go into XCom."""
    facts = Facts(
        {
            "stage": report.stage,
            "rows_in": report.rows_in,
            "rows_out": report.rows_out,
            "seconds": round(report.seconds, 3),
            **trimmed(report.facts),
        }
    )
    for note in report.notes:
        log.info("%s: %s", report.stage, note)
    log.info("%s: %s", report.stage, facts)
    return facts


def trimmed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, flags, ids and paths of `facts`; text, which a person wrote, is dropped.

    A list of ids is kept, any other becomes its length.
    """
    return {k: v for k, v in ((k, _small(v, _DEPTH)) for k, v in facts.items()) if v is not _DROP}


_DROP = object()


def _small(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if _ID.fullmatch(value) else _DROP
    if isinstance(value, Mapping) and depth:
        pairs = ((k, _small(v, depth - 1)) for k, v in value.items() if _ID.fullmatch(str(k)))
        return {str(k): v for k, v in pairs if v is not _DROP}
    if isinstance(value, list | tuple):
        ids = all(isinstance(v, str) and _ID.fullmatch(v) for v in value)
        return list(value) if ids else len(value)
    return _DROP


def announce(asset: Asset, day: str, facts: Mapping[str, Any]) -> None:
    """Give the event of a task's outlet its ids and counts, and the log day as partition key.

    The key is named here because a manual run has none: its event would reach no one.
    """
    event = get_current_context()["outlet_events"][asset]
    event.extra = dict(facts)
    event.add_partitions(day)


def check_targets(facts: Mapping[str, Any]) -> None:
    """Fail in a way that is retried where a target did not answer or was not ready.

    Args:
        facts: A report's whole facts; `unavailable` and `not_ready` list targets, each with its
            reason.

    Raises:
        TargetUnavailable: For the first such target.
    """
    for down in [*(facts.get("unavailable") or ()), *(facts.get("not_ready") or ())]:
        raise TargetUnavailable(down["target"], down["reason"])


def check_gates(facts: Mapping[str, Any]) -> None:
    """Fail for good where a gate did not hold.

    Args:
        facts: A report's whole facts; `gates` holds what was measured, by name.

    Raises:
        GateFailed: With each failed gate's value and threshold.
    """
    failed = [
        f"{name} is {gate['value']:.4g}, its threshold {gate['threshold']:.4g}"
        for name, gate in sorted(facts["gates"].items())
        if not gate["passed"]
    ]
    if failed:
        raise GateFailed("; ".join(failed))
