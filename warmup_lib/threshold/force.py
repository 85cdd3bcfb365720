"""Which threshold is in force for a tenant: the latest calibrated one, else the configured one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.threshold.pairs import EVERYONE


@dataclass(frozen=True)
class Threshold:
    """One tenant's threshold, as it is published to readers.

    Attributes:
        threshold: Cosine from which an answer serves another question.
        bound: Largest share of wrong hits that it keeps; None: it was not calibrated.
        day: Day it was calibrated, ISO date; None: it was not.
    """

    threshold: float
    bound: float | None = None
    day: str | None = None


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of all tenants under one encoder.

    Attributes:
        configured: The one that stands where none was calibrated.
        calibrated: By tenant; under `EVERYONE` that of tenants without one of their own.
    """

    configured: float
    calibrated: Mapping[str, Threshold] = field(default_factory=dict)

    def of(self, tenant: str) -> Threshold:
        """Return a tenant's threshold, with what is known of it."""
        own = self.calibrated.get(tenant) or self.calibrated.get(EVERYONE)
        return own or Threshold(self.configured)

    def digest(self) -> dict[str, str]:
        """Return a digest of what was calibrated, under its name; none where nothing was."""
        if not self.calibrated:
            return {}
        said = repr([(tenant, one.threshold) for tenant, one in sorted(self.calibrated.items())])
        return {"thresholds": hashlib.sha256(said.encode()).hexdigest()[:16]}

    def at(self, tenant: str) -> float:
        """Return the cosine from which a tenant's answers serve other questions."""
        return self.of(tenant).threshold


def in_force(lake: Lake, config: Config, encoder: str, day: str | None = None) -> Thresholds:
    """Return the thresholds under an encoder.

    Args:
        lake: The lake.
        config: The settings.
        encoder: The encoder's fingerprint.
        day: What was calibrated later does not count; None: nothing is later.
    """
    rows = rows_in_force(lake, encoder, day)
    calibrated = {
        tenant: Threshold(row["threshold"], row["bound"], row["day"])
        for tenant, row in rows.items()
        if row["threshold"] is not None
    }
    return Thresholds(config.encoder.threshold, calibrated)


def rows_in_force(lake: Lake, encoder: str, day: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the latest row of `thresholds` of each tenant under an encoder, with its day."""
    rows: dict[str, dict[str, Any]] = {}
    for past in lake.days("thresholds"):
        if day is None or past <= day:
            for row in lake.read("thresholds", {"day": past}).to_pylist():
                if row["encoder"] == encoder:
                    rows[row["tenant"]] = row | {"day": past}
    return rows
