from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from warmup_lib.evidence import Evidence, Looked
from warmup_lib.keys import key_hash
from warmup_lib.observe.instruments import Instruments, current, install, using

SCOPE = "0123456789abcdef"
KEY, OTHER, INDEX = "wu1:s:t:responses:e:p:d", "wu1:s:t:responses:e:p:f", "wu1:s:t:responses:e"


class Seen:
    """What one set of instruments recorded."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._spans = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.instruments = Instruments(MeterProvider([self._reader]), tracers)

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        return [
            (dict(point.attributes or {}), point)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def counted(self, name: str) -> dict[tuple[str, str, str], int]:
        return {
            (a.get("warmup.layer", ""), a.get("warmup.tier", ""), a.get("cache.miss.cause", "")):
                p.value
            for a, p in self.points(name)
        }  # fmt: skip

    @property
    def spans(self) -> list[Any]:
        return list(self._spans.get_finished_spans())


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    with using(seen.instruments):
        yield seen


def look_up(evidence: Evidence, served: Looked | None = None) -> None:
    with current().lookup(SCOPE) as told:
        told.evidence, told.served = evidence, served


def test_a_layer_counts_once_however_many_looks_it_took(seen: Seen) -> None:
    absent = Looked("responses", "absent", KEY)
    near = Looked("responses", "hit", INDEX, nearest=OTHER, similarity=0.95, threshold=0.92)
    head = Looked("embeddings.l1", "hit", "h")
    look_up(Evidence((Looked("embeddings", "absent", "v"), head, absent, near)), near)
    assert seen.counted("cache.hits.total") == {
        ("responses", "", ""): 1,
        ("embeddings", "L1", ""): 1,
    }
    assert seen.counted("cache.misses.total") == {("embeddings", "", ""): 1}
    [(attributes, _), *_] = seen.points("cache.hits.total")
    assert attributes["cache.layer"] == attributes["cache.backend"] == "redis"
    assert attributes["warmup.tenant"] == SCOPE


def test_a_miss_has_the_cause_that_the_last_look_tells(seen: Seen) -> None:
    absent = Looked("responses", "absent", KEY)
    for found in ("below_threshold", "guard_refused", "absent"):
        look_up(Evidence((absent, Looked("responses", found, INDEX, nearest=OTHER))))  # type: ignore[arg-type]
    look_up(Evidence(bypass="header"))
    look_up(Evidence(bypass="parameter"))
    assert seen.counted("cache.misses.total") == {
        ("responses", "", "below_threshold"): 1,
        ("responses", "", "guard_refused"): 1,
        ("responses", "", ""): 1,
        ("", "", "bypass_header"): 1,
        ("", "", "bypass_parameter"): 1,
    }


def test_a_fault_is_a_miss_that_says_so(seen: Seen) -> None:
    look_up(Evidence((Looked("responses", "error", KEY, error="TimeoutError"),)))
    [(attributes, point)] = seen.points("cache.misses.total")
    assert (attributes["warmup.result"], point.value) == ("error", 1)


def test_the_span_names_the_entry_that_served_and_every_look(seen: Seen) -> None:
    absent = Looked("responses", "absent", KEY)
    near = Looked("responses", "hit", INDEX, nearest=OTHER, similarity=0.95)
    look_up(Evidence((absent, near)), near)
    look_up(Evidence((absent,)))
    served, missed = seen.spans
    assert served.attributes["cache.key.hash"] == key_hash(OTHER)
    assert served.attributes["cache.hit"] is True
    assert missed.attributes["cache.key.hash"] == key_hash(KEY)
    assert missed.attributes["cache.hit"] is False
    assert [e.attributes["cache.key.hash"] for e in served.events] == [
        key_hash(KEY),
        key_hash(OTHER),
    ]


def test_metrics_hold_no_key_and_an_exemplar_holds_the_trace(seen: Seen) -> None:
    hit = Looked("responses", "hit", KEY)
    look_up(Evidence((hit,)), hit)
    [(attributes, point)] = seen.points("cache.lookup.duration")
    assert attributes == {"cache.layer": "redis", "cache.hit": True, "warmup.layer": "responses"}
    [exemplar] = point.exemplars
    [span] = seen.spans
    assert exemplar.trace_id == span.context.trace_id
    assert point.sum >= 0


def test_a_lookup_that_fails_counts_nothing_and_tells_no_message(seen: Seen) -> None:
    def fail() -> None:
        with current().lookup(SCOPE):
            raise ValueError("a prompt")

    with pytest.raises(ValueError, match="a prompt"):
        fail()
    assert not seen.points("cache.misses.total")
    [span] = seen.spans
    assert not span.status.is_ok
    assert span.attributes == {"error.type": "ValueError"}
    assert "a prompt" not in span.to_json()


def test_tenants_beyond_the_first_are_counted_as_others_with_their_layer(seen: Seen) -> None:
    """However many there are, no layer's hit is lost in a sum without attributes."""
    tenants = [f"{n:016x}" for n in range(3000)]
    for found in ("absent", "hit"):
        for scope in tenants:
            with current().lookup(scope) as told:
                told.evidence = Evidence((Looked("responses", found, KEY),))  # type: ignore[arg-type]
    for name in ("cache.hits.total", "cache.misses.total"):
        points = seen.points(name)
        assert {a["warmup.layer"] for a, _ in points} == {"responses"}
        by = {a["warmup.tenant"]: p.value for a, p in points}
        assert by == dict.fromkeys(tenants[:50], 1) | {"other": 2950}
    assert seen.spans[-1].attributes["warmup.tenant"] == tenants[-1]


def test_a_batch_that_fails_is_measured_too(seen: Seen) -> None:
    with current().batch("responses", "cache", "redis") as batch:
        batch.key_hashes = ["aa", "bb"]

    def fail() -> None:
        with current().batch("responses", "cache", "redis"):
            raise ConnectionError

    with pytest.raises(ConnectionError):
        fail()
    results = {a["warmup.result"]: p.count for a, p in seen.points("warmup.batch.duration")}
    assert results == {"ok": 1, "failed": 1}
    assert seen.spans[0].attributes["cache.key.hash"] == ("aa", "bb")


def test_instruments_in_force_reach_tasks_and_threads_and_end_with_the_block() -> None:
    inner, outer = Seen(), Seen()
    before = current()

    async def work() -> None:
        async def one() -> None:
            await asyncio.to_thread(look_up, Evidence(bypass="header"))

        await asyncio.gather(one(), one())

    install(outer.instruments)
    try:
        with using(inner.instruments):
            asyncio.run(work())
        look_up(Evidence(bypass="header"))
    finally:
        install(before)
    assert inner.counted("cache.misses.total") == {("", "", "bypass_header"): 2}
    assert outer.counted("cache.misses.total") == {("", "", "bypass_header"): 1}


@pytest.mark.parametrize(
    ("imported", "left_out"),
    [
        ("warmup_lib.observe.instruments", "opentelemetry.sdk"),
        # redis-py itself imports the SDK where it is installed.
        ("warmup_lib.reader", "prometheus_client"),
        ("warmup_lib.reader", "warmup_lib.observe.setup"),
    ],
)
def test_what_an_application_imports_is_light(imported: str, left_out: str) -> None:
    program = f"import sys, {imported}; print('{left_out}' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert told.stdout.split() == [b"False"]
