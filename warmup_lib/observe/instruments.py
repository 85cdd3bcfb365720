"""What is measured while things happen, under which names: OpenTelemetry's API alone.

Nothing is recorded until providers are set up, by `observe.setup` or by the application itself.
A metric's attributes come from short closed lists and hashes of tenants; what tells one entry from
another (the hash of its key) is on spans, and exemplars lead from one to the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache

from opentelemetry import metrics, trace

from warmup_lib import __version__
from warmup_lib.causes import Cause
from warmup_lib.evidence import Evidence, Looked
from warmup_lib.keys import key_hash

CACHE_LAYER = "cache.layer"
"""Where the cache lives: `local`, `redis` or `host`."""
CACHE_BACKEND = "cache.backend"
"""What holds the entries: `redis`, `vllm` ...; of a plan's figures the target's name."""
CACHE_HIT = "cache.hit"
CACHE_KEY_HASH = "cache.key.hash"
"""Hash of an entry's key (`keys.key_hash`), on spans only; receipts have it too."""
MISS_CAUSE = "cache.miss.cause"
WARMUP_LAYER = "warmup.layer"
WARMUP_TIER = "warmup.tier"
TENANT = "warmup.tenant"
"""The 16 hex digits that stand for a tenant in keys (`Keys.scope`), or `OTHER`."""
MOST_TENANTS = 50
"""Tenants that get figures of their own. A metric has so few series then that none is summed up
without its layer, as the SDK does beyond 2,000."""
OTHER = "other"
"""All other tenants."""
PLAN = "warmup.plan"
RESULT = "warmup.result"

LOOKUP_S = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
)  # fmt: skip
"""Bounds of the lookups' histogram, in seconds: a Redis answers in tenths of a millisecond."""
WORK_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600)
"""Bounds of the batches', layers' and verifications' histograms, in seconds."""

_REQUEST_TIME_CAUSES: Mapping[str, str] = {
    "below_threshold": Cause.BELOW_THRESHOLD.value,
    "guard_refused": Cause.GUARD_REFUSED.value,
}
"""What a look itself tells of a miss's cause. Why an entry is absent, only `explain` can tell."""

_BYPASSES: Mapping[str, str] = {
    "header": Cause.BYPASS_HEADER.value,
    "parameter": Cause.BYPASS_PARAMETER.value,
}


@dataclass
class Looking:
    """One lookup in progress; what was seen is put in before it ends.

    Attributes:
        evidence: All looks; None: it ended by an error.
        served: The look that answered the request; None: none did.
    """

    evidence: Evidence | None = None
    served: Looked | None = None


@dataclass
class Batch:
    """One batch being warmed; what became of it is put in before it ends.

    Attributes:
        key_hashes: Hashes of the entries' keys, where they have one.
        result: `ok`, or `failed` where the target gave out.
    """

    key_hashes: Sequence[str] = field(default_factory=tuple)
    result: str = "ok"


class Instruments:
    """The counters, histograms and spans of one process.

    Args:
        meters: Provider of the meters; None: the process's own.
        tracers: Provider of the tracers; None: the process's own.
    """

    def __init__(
        self,
        meters: metrics.MeterProvider | None = None,
        tracers: trace.TracerProvider | None = None,
    ) -> None:
        meter = metrics.get_meter("warmup_lib", __version__, meter_provider=meters)
        self._tenants: set[str] = set()
        self._tracer = trace.get_tracer("warmup_lib", __version__, tracer_provider=tracers)
        self._hits = meter.create_counter(
            "cache.hits.total", description="Looks that found an entry that serves the request"
        )
        self._misses = meter.create_counter(
            "cache.misses.total", description="Looks that found none, and requests that made none"
        )
        self._lookup_s = meter.create_histogram(
            "cache.lookup.duration",
            unit="s",
            description="Time from a request to what the caches have for it",
            explicit_bucket_boundaries_advisory=LOOKUP_S,
        )
        durations = {
            "warmup.batch.duration": "Time to warm one batch of items on one target",
            "warmup.apply.duration": "Time to warm one layer's items on one target",
            "warmup.verify.duration": "Time to verify a plan",
        }
        self._work_s = {
            name: meter.create_histogram(
                name, unit="s", description=said, explicit_bucket_boundaries_advisory=WORK_S
            )
            for name, said in durations.items()
        }

    @contextmanager
    def _span(self, name: str, attributes: Mapping[str, str] | None = None) -> Iterator[trace.Span]:
        """Open a span; of an error it gets the class alone, for its message can quote a prompt."""
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(trace.StatusCode.ERROR)
                raise

    # -- lookups ---------------------------------------------------------------------------------

    @contextmanager
    def lookup(self, scope: str, *, timed: bool = True) -> Iterator[Looking]:
        """Measure one lookup, layer by layer.

        Args:
            scope: The tenant's hash (`Keys.scope`); metrics name the first `MOST_TENANTS`.
            timed: Whether it takes the time that a lookup takes: not one that was over before.
        """
        looking = Looking()
        begun = time.perf_counter()
        with self._span("cache.lookup") as span:
            yield looking
            served, evidence = looking.served, looking.evidence
            for attributes in _counted(evidence, self._named(scope)):
                (self._hits if attributes[CACHE_HIT] else self._misses).add(1, attributes)
            about = _about(served.layer if served else "", served is not None)
            if timed:
                self._lookup_s.record(time.perf_counter() - begun, about)
            if span.is_recording() and evidence is not None:
                span.set_attributes({**about, TENANT: scope, CACHE_BACKEND: "redis"})
                key = _entry(served) if served else _first_named(evidence)
                if key:
                    span.set_attribute(CACHE_KEY_HASH, key_hash(key))
                if evidence.bypass:
                    span.set_attribute(MISS_CAUSE, _BYPASSES[evidence.bypass])
                for look in evidence.looked:
                    span.add_event("cache.look", _look_event(look))

    def _named(self, scope: str) -> str:
        if scope not in self._tenants:
            if len(self._tenants) >= MOST_TENANTS:
                return OTHER
            self._tenants.add(scope)
        return scope

    # -- warming ---------------------------------------------------------------------------------

    @contextmanager
    def batch(self, layer: str, target: str, place: str) -> Iterator[Batch]:
        """Measure one batch of a layer's items on one target.

        Args:
            layer: The layer.
            target: The target's name.
            place: Its kind: `redis` or `host`.
        """
        batch = Batch()
        begun = time.perf_counter()
        with self._span("warmup.batch") as span:
            try:
                yield batch
            except BaseException:
                batch.result = "failed"
                raise
            finally:
                about = {
                    WARMUP_LAYER: layer,
                    CACHE_LAYER: place,
                    CACHE_BACKEND: target,
                    RESULT: batch.result,
                }
                took = time.perf_counter() - begun
                self._work_s["warmup.batch.duration"].record(took, about)
                if span.is_recording():
                    span.set_attributes({**about, CACHE_KEY_HASH: list(batch.key_hashes)})

    @contextmanager
    def work(self, name: str, plan_id: str, attributes: Mapping[str, str]) -> Iterator[None]:
        """Measure a longer piece of work on a plan in a span of its own.

        Args:
            name: `warmup.apply` or `warmup.verify`.
            plan_id: The plan; on the span only.
            attributes: Of span and metric.
        """
        begun = time.perf_counter()
        with self._span(name, {**attributes, PLAN: plan_id}):
            yield
            self._work_s[f"{name}.duration"].record(time.perf_counter() - begun, attributes)


_current: ContextVar[Instruments | None] = ContextVar("warmup_instruments", default=None)
_installed: list[Instruments] = []


def current() -> Instruments:
    """Return the instruments in force; by default those of the process's own providers."""
    if (using := _current.get()) is not None:
        return using
    if not _installed:
        _installed.append(Instruments())
    return _installed[0]


def install(instruments: Instruments) -> None:
    """Put instruments in force for the whole process, whose requests share no context."""
    _installed[:] = [instruments]


@contextmanager
def using(instruments: Instruments) -> Iterator[None]:
    """Put instruments in force for what is called meanwhile."""
    before = _current.set(instruments)
    try:
        yield
    finally:
        _current.reset(before)


# -- attributes ----------------------------------------------------------------------------------


def _counted(evidence: Evidence | None, scope: str) -> Iterator[Mapping[str, str | bool]]:
    """Yield the attributes of each layer that was looked in, however many looks that took.

    A request that looked nowhere gives one miss, of no layer.
    """
    if evidence is None:
        return
    found: dict[str, str] = {}
    for look in evidence.looked:
        if found.get(look.layer) != "hit":
            found[look.layer] = look.found
    for layer, what in found.items():
        yield _attributes(layer, what, scope)
    if not found and evidence.bypass:
        yield {**_attributes("", "absent", scope), MISS_CAUSE: _BYPASSES[evidence.bypass]}


@lru_cache(maxsize=2048)
def _attributes(layer: str, found: str, scope: str) -> Mapping[str, str | bool]:
    hit = found == "hit"
    told = {**_about(layer, hit), CACHE_BACKEND: "redis", TENANT: scope}
    if not hit and found in _REQUEST_TIME_CAUSES:
        told[MISS_CAUSE] = _REQUEST_TIME_CAUSES[found]
    if found == "error":
        told[RESULT] = "error"
    return told


@lru_cache(maxsize=256)
def _about(layer: str, hit: bool) -> dict[str, str | bool]:
    name, _, tier = layer.partition(".")
    told: dict[str, str | bool] = {CACHE_LAYER: "redis", CACHE_HIT: hit}
    if name:
        told[WARMUP_LAYER] = name
    if tier:
        told[WARMUP_TIER] = tier.upper()
    return told


def _entry(look: Looked) -> str:
    return look.nearest or look.key


def _first_named(evidence: Evidence) -> str:
    return next((_entry(look) for look in evidence.looked), "")


def _look_event(look: Looked) -> dict[str, str | float]:
    told: dict[str, str | float] = {
        WARMUP_LAYER: look.layer,
        "cache.found": look.found,
        CACHE_KEY_HASH: key_hash(_entry(look)),
    }
    if look.similarity is not None:
        told["cache.similarity"] = look.similarity
    return told
