"""Settings of what is measured: where metrics and spans go."""

from __future__ import annotations

from pydantic import Field

from warmup_lib.config.kinds import Section, Share


class ObserveConfig(Section):
    """Where metrics and spans go. Both ways are optional."""

    otlp: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="OpenTelemetry collector, such as http://collector:4318, that gets metrics and "
        "spans; its login comes from OTEL_EXPORTER_OTLP_HEADERS. Empty: that of the variable "
        "OTEL_EXPORTER_OTLP_ENDPOINT, if any",
    )
    listen: str = Field(
        "127.0.0.1:9464",
        pattern=r"^\S+:\d{1,5}$",
        description="host:port where `warmup metrics` answers Prometheus",
    )
    traces: Share = Field(1.0, description="share of lookups and batches whose spans are kept")
