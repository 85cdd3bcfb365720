"""Metrics in Prometheus's forms: OpenTelemetry names made Prometheus's, exemplars kept.

The SDK's own exporter leaves exemplars out, and these are what leads from a quantile to a key, so
its metrics are handed to `prometheus_client` here (ADR 19).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from opentelemetry.sdk.metrics.export import (
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricReader,
    MetricsData,
    NumberDataPoint,
    Sum,
)
from opentelemetry.trace import format_span_id, format_trace_id
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Exemplar

_OTHER = re.compile(r"[^a-zA-Z0-9_:]+")
_UNITS = {"s": "seconds", "By": "bytes"}

Labels = tuple[tuple[str, str], ...]
Held = dict[tuple[str, Labels, int], Exemplar]


def prometheus_name(name: str) -> str:
    """Return a name of OpenTelemetry as Prometheus has it, without unit and `_total`."""
    return _OTHER.sub("_", name)


def labels(attributes: Mapping[str, Any] | None) -> Labels:
    """Return attributes as Prometheus's labels, sorted."""
    told = (attributes or {}).items()
    return tuple(sorted((_OTHER.sub("_", k), _text(v)) for k, v in told))


class PrometheusReader(MetricReader):
    """Hands the SDK's metrics to a registry of `prometheus_client` at each scrape.

    Each bucket keeps its last exemplar, so that all who scrape find it.

    Args:
        registry: Where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._registry = registry
        self._exemplars: Held = {}
        self._data: MetricsData | None = None
        self._scraped = _Scraped(self)
        registry.register(self._scraped)

    def families(self) -> Iterable[Family]:
        """Return all metrics as they are now."""
        self.collect()
        data, self._data = self._data, None
        return self._families(data) if data is not None else ()

    def _receive_metrics(
        self,
        metrics_data: MetricsData,
        timeout_millis: float = 10_000,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        self._data = metrics_data
        for resource in metrics_data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        if isinstance(point, HistogramDataPoint):
                            self._keep_exemplars(metric.name, point)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:  # noqa: ARG002
        """Take the metrics out of the registry."""
        self._registry.unregister(self._scraped)

    def _families(self, data: MetricsData) -> Iterator[Family]:
        for resource in data.resource_metrics:
            about = dict(labels(resource.resource.attributes))
            yield InfoMetricFamily("target", "Who is measured", value=about)
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield self._family(metric)

    def _family(self, metric: Metric) -> Family:
        points: Sequence[Any] = metric.data.data_points
        names = sorted({name for point in points for name, _ in labels(point.attributes)})
        about: dict[str, Any] = {
            "name": prometheus_name(metric.name),
            "documentation": metric.description or "",
            "labels": names,
            "unit": _UNITS.get(metric.unit or "", ""),
        }
        if isinstance(metric.data, Histogram):
            histogram = HistogramMetricFamily(**about)
            for point in points:
                buckets = self._buckets(metric.name, point)
                histogram.add_metric(_values(point, names), buckets, point.sum)
            return histogram
        counts = isinstance(metric.data, Sum) and metric.data.is_monotonic
        family = CounterMetricFamily(**about) if counts else GaugeMetricFamily(**about)
        for point in points:
            family.add_metric(_values(point, names), point.value)
        return family

    def _buckets(self, name: str, point: HistogramDataPoint) -> list[Any]:
        ours = labels(point.attributes)
        counts = zip(_bounds(point), accumulate(point.bucket_counts), strict=True)
        return [
            (_bound(bound), count, self._exemplars.get((name, ours, place)))
            for place, (bound, count) in enumerate(counts)
        ]

    def _keep_exemplars(self, name: str, point: HistogramDataPoint) -> None:
        """Keep the last one of each bucket: the SDK gives each away once, to whoever collects."""
        ours = labels(point.attributes)
        for seen in point.exemplars:
            if seen.trace_id is None or seen.span_id is None:
                continue
            place = next(n for n, bound in enumerate(_bounds(point)) if seen.value <= bound)
            told = {
                "trace_id": format_trace_id(seen.trace_id),
                "span_id": format_span_id(seen.span_id),
            }
            at = seen.time_unix_nano / 1e9
            self._exemplars[name, ours, place] = Exemplar(told, seen.value, at)


def _bounds(point: HistogramDataPoint) -> list[float]:
    return [*point.explicit_bounds, float("inf")]


class _Scraped(Collector):
    """What a registry asks; a reader's own `collect` gives nothing back."""

    def __init__(self, reader: PrometheusReader) -> None:
        self._reader = reader

    def collect(self) -> Iterable[Family]:
        return self._reader.families()


def _values(point: HistogramDataPoint | NumberDataPoint, names: Sequence[str]) -> list[str]:
    told = dict(labels(point.attributes))
    return [told.get(name, "") for name in names]


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(float(bound))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
