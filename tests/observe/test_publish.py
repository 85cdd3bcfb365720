from __future__ import annotations

import time

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest

from tests.observe.receiver import Receiver
from warmup_lib.config import ObserveConfig
from warmup_lib.observe.figures import DESCRIPTIONS, Figure
from warmup_lib.observe.instruments import current
from warmup_lib.observe.publish import FiguresCollector, observed
from warmup_lib.stack.process import free_port


def figure(value: float = 0.5, **attributes: str) -> Figure:
    return Figure("warmup.completion", value, {"warmup.layer": "responses", **attributes})


def test_figures_are_read_at_the_first_scrape_and_not_by_every_scraper() -> None:
    asked = []

    def read() -> list[Figure]:
        asked.append(1)
        return [figure(), figure(1.0, **{"warmup.tier": "L1"})]

    registry = CollectorRegistry()
    registry.register(FiguresCollector(read))
    assert not asked
    told = generate_latest(registry).decode()
    assert told == generate_latest(registry).decode()
    assert asked == [1]
    assert 'warmup_completion{warmup_layer="responses",warmup_tier="L1"} 1.0' in told
    assert 'warmup_completion{warmup_layer="responses",warmup_tier=""} 0.5' in told


def test_every_figure_has_a_name_that_prometheus_takes() -> None:
    registry = CollectorRegistry()
    registry.register(FiguresCollector(lambda: [Figure(n, 1, {}) for n in DESCRIPTIONS]))
    told = generate_latest(registry).decode()
    assert "warmup_verified_timestamp_seconds 1.0" in told
    assert told.count("# TYPE") == len(DESCRIPTIONS)


def test_a_stage_that_fails_pushes_what_it_did_and_no_figures() -> None:
    def stage(config: ObserveConfig) -> None:
        with (
            observed(config, "apply", lambda: [figure()]),
            current().batch("responses", "cache", "redis"),
        ):
            raise ConnectionError

    with Receiver() as receiver:
        with pytest.raises(ConnectionError):
            stage(ObserveConfig(otlp=receiver.url + "/"))
        [(told, point)] = receiver.points("warmup.batch.duration")
        assert (told["warmup.result"], point.count) == ("failed", 1)
        assert receiver.points("warmup.completion") == []
        assert [span["warmup.result"] for span in receiver.spans("warmup.batch")] == ["failed"]


def test_a_collector_that_is_down_fails_no_stage_and_holds_it_up_but_briefly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = ObserveConfig(otlp=f"http://127.0.0.1:{free_port()}")
    begun = time.monotonic()
    with observed(config, "apply", lambda: [figure()]), current().batch("a", "b", "redis"):
        pass
    assert time.monotonic() - begun < 20
    assert any("export" in record.message.lower() for record in caplog.records)
