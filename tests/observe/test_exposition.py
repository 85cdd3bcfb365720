from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from warmup_lib.config import ObserveConfig
from warmup_lib.observe.setup import Telemetry, start


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    telemetry = start(ObserveConfig(), "test")
    yield telemetry
    telemetry.close()


def samples(telemetry: Telemetry) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Read the exposition back with Prometheus's own strict parser."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(generate_latest(telemetry.registry).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def test_a_counter_named_total_is_not_totalled_twice(telemetry: Telemetry) -> None:
    meter = telemetry.meters.get_meter("t")
    meter.create_counter("cache.hits.total").add(3, {"cache.hit": True, "a.b": "c"})
    found = samples(telemetry)
    assert found["cache_hits_total"] == [({"cache_hit": "true", "a_b": "c"}, 3.0)]
    assert not [name for name in found if "total_total" in name]


def test_units_end_names_and_gauges_keep_theirs(telemetry: Telemetry) -> None:
    meter = telemetry.meters.get_meter("t")
    meter.create_gauge("warmup.completion").set(0.5)
    meter.create_gauge("warmup.verified.timestamp", unit="s").set(7)
    meter.create_up_down_counter("in.flight").add(-2)
    found = samples(telemetry)
    assert found["warmup_completion"] == [({}, 0.5)]
    assert found["warmup_verified_timestamp_seconds"] == [({}, 7.0)]
    assert found["in_flight"] == [({}, -2.0)]
    assert found["target_info"][0][0]["service_name"] == "test"


def test_points_of_one_metric_may_have_different_attributes(telemetry: Telemetry) -> None:
    counter = telemetry.meters.get_meter("t").create_counter("looks")
    counter.add(1, {"layer": "a"})
    counter.add(2, {"layer": "a", "tier": "L1"})
    assert samples(telemetry)["looks_total"] == [
        ({"layer": "a", "tier": ""}, 1.0),
        ({"layer": "a", "tier": "L1"}, 2.0),
    ]


def test_buckets_add_up_and_each_keeps_its_last_exemplar(telemetry: Telemetry) -> None:
    meter = telemetry.meters.get_meter("t")
    histogram = meter.create_histogram(
        "took", unit="s", explicit_bucket_boundaries_advisory=[1.0, 2.0]
    )
    tracer = telemetry.tracers.get_tracer("t")
    traces = []
    for value in (0.5, 0.7, 1.5, 9.0):
        with tracer.start_as_current_span("work") as span:
            histogram.record(value)
            traces.append(f"{span.get_span_context().trace_id:032x}")
    histogram.record(0.1)  # outside of any trace
    telemetry.meters.force_flush()  # another collects in between, such as a push
    for _ in range(2):
        [took] = [
            family
            for family in text_string_to_metric_families(
                generate_latest(telemetry.registry).decode()
            )
            if family.name == "took_seconds"
        ]
        buckets = {s.labels["le"]: s for s in took.samples if s.name.endswith("_bucket")}
        assert {le: s.value for le, s in buckets.items()} == {"1.0": 3, "2.0": 4, "+Inf": 5}
        held = {le: s.exemplar for le, s in buckets.items()}
        assert {le: (e.labels["trace_id"], e.value) for le, e in held.items() if e} == {
            "1.0": (traces[1], 0.7),
            "2.0": (traces[2], 1.5),
            "+Inf": (traces[3], 9.0),
        }


def test_spans_that_are_not_kept_leave_no_exemplar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    telemetry = start(ObserveConfig(traces=0.0), "test")
    with telemetry.tracers.get_tracer("t").start_as_current_span("work"):
        telemetry.meters.get_meter("t").create_histogram("took").record(1)
    assert "trace_id" not in generate_latest(telemetry.registry).decode()
    telemetry.close()
