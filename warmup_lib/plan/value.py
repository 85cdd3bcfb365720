"""What warming an item saves those who ask for it, and what warming it takes.

Saved is the wait of the hits that warming adds, weighed by how far waiting is above the latency
that is aimed at. An entry that only we write adds the hits expected in its lifetime. One that
traffic writes too (a head, a model's first steps) adds a hit where the first request comes before
it is evicted: with requests at random at rate r and a lifetime T, the chance is 1 - exp(-r T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from warmup_lib.config import Config
from warmup_lib.plan.measured import Measured, Place, Spent, Waiting
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import ints
from warmup_lib.plan.problem import Reals
from warmup_lib.tables import MICRO

if TYPE_CHECKING:
    import pyarrow as pa

_DAY_S = timedelta(days=1).total_seconds()
_PRESSED_MOST = 4.0

_ANSWER_MS = 1000.0
_TOKEN_MS = 1.0
_SAVED_MS = {
    ("embeddings", None): 5.0,
    ("embeddings", "L1"): 1.0,
    ("embeddings", "L2"): 5.0,
    ("retrieval", None): 5.0,
    ("retrieval", "L3"): 20.0,
    ("adapters", None): 1000.0,
    ("weights", None): 1000.0,
}
"""What a hit saves where nothing is measured: encoding, a search, loading."""

_SPENT = {
    "weights": Spent(1.2, 0.0, 3.2e9, 0.0),
    "adapters": Spent(0.045, 0.0, 12e6, 0.0),
    "prefixes": Spent(0.018, 0.018 / 512, 8e6, 8e6 / 512),
    "retrieval": Spent(0.062 / 100, 0.0, 4e4, 0.0),
    "embeddings": Spent(0.0005, 0.0, 0.0, 0.0),
    "responses": Spent(0.001, 0.0, 0.0, 0.0),
}
"""What warming takes where nothing is measured; `Spent` by layer."""


@dataclass(frozen=True)
class Value:
    """Values and costs of candidates, by what was measured, else by defaults.

    Attributes:
        config: The settings.
        measured: The figures that there are.
    """

    config: Config
    measured: Measured

    def saved(self, candidates: pa.Table, expected: Ints, tokens: Ints) -> Ints:
        """Return what candidates of one layer and tier save, in microseconds of waiting a day.

        Args:
            candidates: Rows of the `plan` table.
            expected: (n,) hits that each one is expected to have, in millionths a day.
            tokens: (n,) tokens of those that are heads.
        """
        if not candidates.num_rows:
            return np.zeros(0, np.int64)
        layer, tier = candidates["layer"][0].as_py(), candidates["tier"][0].as_py()
        hits = self._added(layer, candidates, expected)
        if layer == "responses":
            saved = self._by_place(candidates, self._answer)
        elif layer == "prefixes":
            saved = tokens * self.token_ms * self._by_place(candidates, self._pressed_first)
        else:
            saved = np.full(len(expected), _SAVED_MS[layer, tier])
        return np.asarray(np.floor(hits * saved / 1000), dtype=np.int64)

    @property
    def token_ms(self) -> float:
        """What a token in the cache saves of the time to first token."""
        known = self.measured.token_ms
        return _TOKEN_MS if known is None else known

    def seconds(self, candidates: pa.Table, tokens: Ints) -> Reals:
        """Return what warming each candidate of one layer takes; heads by their tokens."""
        if not candidates.num_rows:
            return np.zeros(0)
        layer = candidates["layer"][0].as_py()
        spent = self.spent(layer)
        if layer == "prefixes":
            return np.asarray(tokens * spent.token_s, dtype=np.float64)
        seconds = np.full(candidates.num_rows, spent.item_s)
        if layer == "responses":
            missing = np.asarray(candidates["response"].is_null(), dtype=np.bool_)
            seconds[missing] += self._by_place(candidates, self._generation)[missing] / 1000
        return seconds

    def spent(self, layer: str) -> Spent:
        """Return what warming an item, or a token, of a layer takes."""
        return self.measured.spent.get(layer, _SPENT[layer])

    def sources(self) -> dict[str, str]:
        """Say where the figures of waiting are from: `log`, `hosts` or `default`."""
        return {
            "answer_ms": "default" if self.measured.answer_ms is None else "log",
            "token_ms": self.measured.token_from or "default",
        }

    def _added(self, layer: str, candidates: pa.Table, expected: Ints) -> Reals:
        """Return the hits that warming adds a day, in millionths."""
        days = ints(candidates["ttl_s"]) / _DAY_S
        by_traffic = {"weights", "prefixes"}
        if self.config.layers.responses.gateway_writes:
            by_traffic.add("responses")
        if layer in by_traffic:
            return MICRO * -np.expm1(-expected / MICRO * days)
        return np.asarray(expected * np.minimum(days, 1.0), dtype=np.float64)

    def _by_place(self, candidates: pa.Table, of: Callable[[Place], float]) -> Reals:
        known = cache(of)
        columns = (candidates[name].to_pylist() for name in ("tenant", "model", "adapter"))
        return np.array([known(place) for place in zip(*columns, strict=True)])

    def _waiting(self, place: Place) -> Waiting:
        mean = self.measured.answer_ms
        everywhere = Waiting(_ANSWER_MS if mean is None else mean)
        return self.measured.places.get(place, everywhere)

    def _generation(self, place: Place) -> float:
        return self._waiting(place).answer_ms

    def _answer(self, place: Place) -> float:
        waiting = self._waiting(place)
        return waiting.answer_ms * _pressed(waiting.answer_p95, self.config.slo.answer)

    def _pressed_first(self, place: Place) -> float:
        return _pressed(self._waiting(place).first_token_p95, self.config.slo.first_token)


def _pressed(measured_ms: float | None, aim: timedelta | None) -> float:
    """Return how many times the latency aimed at is measured: from 1, where it is kept, to 4."""
    if measured_ms is None or aim is None:
        return 1.0
    return min(max(measured_ms / (aim.total_seconds() * 1000), 1.0), _PRESSED_MOST)
