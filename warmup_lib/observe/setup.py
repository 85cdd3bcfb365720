"""OpenTelemetry's SDK as the settings want it: providers, push by OTLP, a Prometheus registry."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from prometheus_client import CollectorRegistry, make_asgi_app

from warmup_lib import __version__
from warmup_lib.config import ObserveConfig
from warmup_lib.observe.exposition import PrometheusReader
from warmup_lib.observe.instruments import Instruments

_PUSH_TIMEOUT_S = 5.0
"""A collector that does not answer may hold a stage up so long, and no longer."""


@dataclass(frozen=True)
class Telemetry:
    """What one process measures with.

    Attributes:
        instruments: What it records with.
        registry: Where a Prometheus endpoint finds the metrics.
        meters: The provider behind the metrics.
        tracers: The provider behind the spans.
    """

    instruments: Instruments
    registry: CollectorRegistry
    meters: MeterProvider
    tracers: TracerProvider

    def asgi(self) -> Any:
        """Return the Prometheus endpoint as an ASGI application, to mount at `/metrics`."""
        return make_asgi_app(self.registry)

    def close(self) -> None:
        """Push what is left, and end."""
        self.tracers.shutdown()
        self.meters.shutdown()


def pushed_to(config: ObserveConfig) -> str:
    """Return the collector's address, without a slash at its end; empty: nothing is pushed."""
    return (config.otlp or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")).rstrip("/")


def start(
    config: ObserveConfig,
    service: str,
    *,
    instance: str = "",
    spans: SpanProcessor | None = None,
) -> Telemetry:
    """Set the SDK up; nothing of the process's own providers is touched.

    Standard variables (OTEL_RESOURCE_ATTRIBUTES, OTEL_EXPORTER_OTLP_HEADERS ...) hold too.

    Args:
        config: Where metrics and spans go.
        service: The service's name, such as `warmup-gateway`.
        instance: What tells it from others of that name on this machine.
        spans: Gets all finished spans as well.
    """
    name = socket.gethostname()
    about = {
        "service.name": service,
        "service.version": __version__,
        "service.instance.id": f"{name}/{instance}" if instance else name,
    }
    resource = Resource.create(about)
    registry = CollectorRegistry()
    readers: list[MetricReader] = [PrometheusReader(registry)]
    tracers = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(config.traces)), resource=resource
    )
    if spans is not None:
        tracers.add_span_processor(spans)
    if base := pushed_to(config):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        pushed = OTLPMetricExporter(f"{base}/v1/metrics", timeout=_PUSH_TIMEOUT_S)
        readers.append(PeriodicExportingMetricReader(pushed))
        traced = OTLPSpanExporter(f"{base}/v1/traces", timeout=_PUSH_TIMEOUT_S)
        tracers.add_span_processor(BatchSpanProcessor(traced))
    meters = MeterProvider(metric_readers=readers, resource=resource)
    return Telemetry(Instruments(meters, tracers), registry, meters, tracers)
