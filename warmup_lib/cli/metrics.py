"""The command that serves the lake's figures to Prometheus."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from warmup_lib import pipeline
from warmup_lib.cli.common import ERR, Call, command, table
from warmup_lib.errors import ConfigError
from warmup_lib.observe.figures import Figure

if TYPE_CHECKING:
    from rich.console import Console

_LAST_PORT = 65_535


@click.command()
@click.option("--plan", "plan_id", help="Plan to tell of; by default the one looked at last.")
@click.option("--listen", help="host:port to answer on, in place of `observe.listen`.")
@click.option("--once", is_flag=True, help="Print the figures and end.")
@command
def metrics(call: Call, plan_id: str | None, listen: str | None, once: bool) -> None:
    """Serve a plan's figures to Prometheus: completion, hit ratios, causes, forecasts.

    Batch jobs end before Prometheus asks, so this reads what they left in the lake. It runs until
    it is stopped; --json prints the figures once.

    \b
    Examples:
      warmup metrics --once
      warmup metrics --listen 0.0.0.0:9464
    """
    if once or call.as_json:
        found = pipeline.figures(call.config, plan_id)
        rows = [{"name": f.name, "value": f.value, "attributes": f.attributes} for f in found]
        call.answer({"figures": rows}, lambda console: _show(console, found))
        return
    address = listen or call.config.observe.listen
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise ConfigError(f"'{address}' is not host:port, such as 127.0.0.1:9464")
    _serve(call, plan_id, host, int(port))


def _serve(call: Call, plan_id: str | None, host: str, port: int) -> None:
    from prometheus_client import CollectorRegistry, start_http_server

    from warmup_lib.observe.publish import FiguresCollector

    registry = CollectorRegistry()
    registry.register(FiguresCollector(lambda: pipeline.figures(call.config, plan_id)))
    stopped = threading.Event()

    def stop(*_: Any) -> None:
        stopped.set()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, stop)
    server, thread = start_http_server(port, host, registry)
    ERR.print(f"figures of {call.config.lake} on http://{host}:{server.server_port}/metrics")
    stopped.wait()
    server.shutdown()
    server.server_close()
    thread.join()


def _show(console: Console, found: list[Figure]) -> None:
    rows = [
        [f.name, ", ".join(f"{k}={v}" for k, v in f.attributes.items()), f.value] for f in found
    ]
    console.print(table("Figures", "metric", "attributes", "value", rows=rows))
