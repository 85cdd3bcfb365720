"""A collector for tests: takes OTLP over HTTP and keeps what came."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """What was pushed.

    Attributes:
        bodies: Every request's body.
        authorisations: Every request's header `authorization`.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.authorisations: list[str | None] = []
        self._spans: list[Any] = []
        self._metrics: list[Any] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.take(self.path, body, self.headers.get("authorization"))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path: str, body: bytes, authorisation: str | None) -> None:
        self.bodies.append(body)
        self.authorisations.append(authorisation)
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            self._spans += [
                span for r in traces.resource_spans for s in r.scope_spans for span in s.spans
            ]
        elif path == "/v1/metrics":
            metrics = ExportMetricsServiceRequest.FromString(body)
            for resource in metrics.resource_metrics:
                self._metrics += [one for scope in resource.scope_metrics for one in scope.metrics]

    def spans(self, name: str) -> list[dict[str, Any]]:
        """Return the attributes of the spans of a name, and their trace id."""
        return [
            {"trace_id": span.trace_id.hex(), **{a.key: value(a.value) for a in span.attributes}}
            for span in self._spans
            if span.name == name
        ]

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return the attributes and the point of each one of a metric."""
        found = []
        for metric in self._metrics:
            if metric.name == name:
                data = getattr(metric, metric.WhichOneof("data"))
                found += [
                    ({a.key: value(a.value) for a in p.attributes}, p) for p in data.data_points
                ]
        return found

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def value(held: Any) -> Any:
    kind = held.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in held.array_value.values]
    return getattr(held, kind)
