"""The figures of a plan on their way out: served to Prometheus, or pushed when a stage ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from warmup_lib import __version__
from warmup_lib.config import ObserveConfig
from warmup_lib.observe.exposition import labels, prometheus_name
from warmup_lib.observe.figures import DESCRIPTIONS, Figure
from warmup_lib.observe.instruments import using
from warmup_lib.observe.setup import start

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

_KEPT_S = 15.0
"""Figures change when a stage ends: several scrapers at once need not read the lake each."""

_UNITS = {"warmup.verified.timestamp": "s"}

Read = Callable[[], Sequence[Figure]]


class FiguresCollector(Collector):
    """Gives a registry the figures as the lake has them when it is asked.

    Args:
        read: Reads them.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: Sequence[Figure] = ()
        self._until = 0.0

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return nothing, so that no lake is read before the first scrape."""
        return ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return one family a figure."""
        if time.monotonic() >= self._until:
            self._known = self._read()
            self._until = time.monotonic() + _KEPT_S
        by_name: dict[str, list[Figure]] = {}
        for figure in self._known:
            by_name.setdefault(figure.name, []).append(figure)
        return [_family(name, figures) for name, figures in by_name.items()]


@contextmanager
def observed(config: ObserveConfig, stage: str, read: Read) -> Iterator[None]:
    """Record what a stage does; when it ends, push that and the figures as they are then.

    Args:
        config: Where metrics and spans go.
        stage: The stage's name.
        read: Reads the figures once the stage has ended; not called where it failed.
    """
    telemetry = start(config, "warmup-planner", instance=stage)
    try:
        with using(telemetry.instruments):
            yield
        set_gauges(telemetry.meters.get_meter("warmup_lib", __version__), read())
    finally:
        telemetry.close()


def set_gauges(meter: Meter, figures: Iterable[Figure]) -> None:
    """Record figures as gauges."""
    gauges = {}
    for figure in figures:
        if figure.name not in gauges:
            gauges[figure.name] = meter.create_gauge(
                figure.name,
                unit=_UNITS.get(figure.name, ""),
                description=DESCRIPTIONS[figure.name],
            )
        gauges[figure.name].set(figure.value, dict(figure.attributes))


def _family(name: str, figures: Sequence[Figure]) -> GaugeMetricFamily:
    names = sorted({label for f in figures for label, _ in labels(f.attributes)})
    unit = "seconds" if name in _UNITS else ""
    family = GaugeMetricFamily(prometheus_name(name), DESCRIPTIONS[name], labels=names, unit=unit)
    for figure in figures:
        told = dict(labels(figure.attributes))
        family.add_metric([told.get(label, "") for label in names], figure.value)
    return family
