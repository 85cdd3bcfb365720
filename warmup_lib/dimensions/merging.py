"""What a key would have done on a log: distinct keys, hits, and hits with another one's answer.

The cache holds everything for the whole window and keeps the first answer of a key. So each key
misses once, and a hit is wrong where the request's own answer is not the one that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warmup_lib.dimensions.codes import Numbers, distinct
from warmup_lib.dimensions.reading import Log


@dataclass(frozen=True)
class Merging:
    """What one way to build keys comes to.

    Attributes:
        requests: Requests that asked.
        keys: Distinct keys.
        judged: Hits of which the kept answer and the request's own one are known.
        wrong: Of these, those whose answers differ.
    """

    requests: int
    keys: int
    judged: int
    wrong: int

    @property
    def hit_ratio(self) -> float:
        """Share of the requests whose key was seen before: attainable at most."""
        return 1 - self.keys / self.requests if self.requests else 0.0

    @property
    def wrong_rate(self) -> float | None:
        """Wrong merges over judged hits; None: no hit can be judged."""
        return self.wrong / self.judged if self.judged else None


def count_keys(log: Log, key: Numbers) -> int:
    """Return the distinct keys of the requests that asked."""
    return distinct(key[log.asked])


def merging(log: Log, key: Numbers) -> Merging:
    """Return what keys come to.

    Args:
        log: The log, by time.
        key: (requests,) number of the key.
    """
    answered = np.flatnonzero(log.answer >= 0)
    own, known = key[answered], log.answer[answered]
    order = np.argsort(own, kind="stable")
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = own[order][1:] != own[order][:-1]
    kept = known[order][np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
    hit = ~begins & log.asked[answered][order]
    return Merging(
        requests=int(np.count_nonzero(log.asked)),
        keys=count_keys(log, key),
        judged=int(np.count_nonzero(hit)),
        wrong=int(np.count_nonzero(hit & (kept != known[order]))),
    )
