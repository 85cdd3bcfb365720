"""Which cache a reader reads: where it is, and how its entries were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from warmup_lib.keys import Keys
from warmup_lib.places import Places

Encode = Callable[[str], Sequence[float] | None]
"""Returns the vector of a text, of length 1; None where the encoder would not read all of it."""


@dataclass(frozen=True)
class Cache:
    """A Redis that the planner warms, and what its entries were made with.

    Attributes:
        url: `redis://`, `rediss://` or `unix://`; login and TLS settings in the URL.
        keys: The key builder, under the planner's secret.
        encoder: Fingerprint of the planner's encoder.
        dimension: Length of its vectors.
        encode: Gives a canonical text its vector, where none is stored; None: such a prompt finds
            no similar one.
        adapters: Adapter in the log -> the name under which hosts serve its present weights.
        threshold: Cosine from which a question is similar, where the Redis holds none that was
            calibrated for the tenant.
        ttl_s: Lifetime of what is stored, in seconds.
        timeout_s: Longest wait for one round trip, connecting included.
        lock_s: Longest time that others wait for one that computes the same answer in another
            process; a longer computation is done again there. 0: they don't wait.
    """

    url: str
    keys: Keys
    encoder: str
    dimension: int
    encode: Encode | None = None
    adapters: Mapping[str, str] = field(default_factory=dict)
    threshold: float = 0.92
    ttl_s: int = 48 * 3600
    timeout_s: float = 0.25
    lock_s: float = 10.0

    @cached_property
    def places(self) -> Places:
        """Where its entries lie."""
        return Places(self.keys, self.encoder, self.adapters)
