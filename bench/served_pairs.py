"""Asks real caches which pairs they serve: the reader, and RedisVL's `SemanticCache` unmodified.

Each pair is alone in its cache: the stored question lies under a tag of its own, the asked one
looks under that tag, and what comes back is a hit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import redis

from warmup_lib.keys import Keys, Request, embedding_text
from warmup_lib.reader import Cache, SyncReader

Vectors = Mapping[str, np.ndarray]
"""Canonical text -> its vector."""

Check = Callable[[float], np.ndarray]
"""Returns which pairs are served from a cosine on, one asked after the other."""

_TENANT = "acme"


def by_reader(
    url: str, encoder: str, pairs: Sequence[tuple[str, str]], vectors: Vectors, threshold: float
) -> np.ndarray:
    """Return which pairs the reader serves where a threshold is published for the tenant.

    Args:
        url: An empty Redis with a search module.
        encoder: Fingerprint of the encoder.
        pairs: (n,) the question that is asked and the one that is stored.
        vectors: Of both.
        threshold: The tenant's.
    """
    dimension = len(next(iter(vectors.values())))
    cache = Cache(url, Keys(b"the secret of a bench"), encoder, dimension, timeout_s=30)
    cache = Cache(**vars(cache) | {"encode": lambda text: vectors[text].tolist()})
    asks = [[Request(_TENANT, "m", t, f"pair {n}") for t in two] for n, two in enumerate(pairs)]
    with SyncReader(cache) as reader, redis.Redis.from_url(url) as client:
        client.hset(cache.places.threshold(_TENANT), "threshold", str(threshold))
        for _, stored in asks:
            vector = vectors[embedding_text(stored.prompt)].astype("<f4").tobytes()
            assert reader.store(stored, "an answer", vector)
        return np.array([reader.lookup(asked).hit for asked, _ in asks])


@contextmanager
def redisvl(url: str, pairs: Sequence[tuple[str, str]], vectors: Vectors) -> Iterator[Check]:
    """Give what asks a `SemanticCache` that holds the stored question of each pair."""
    from redisvl.extensions.cache.llm import SemanticCache
    from redisvl.query.filter import Tag
    from redisvl.utils.vectorize import CustomVectorizer

    known = {text: vector.tolist() for text, vector in vectors.items()}
    cache = SemanticCache(
        name="redisvl",
        vectorizer=CustomVectorizer(
            embed=lambda text, **_: known.get(text, next(iter(known.values())))
        ),
        filterable_fields=[{"name": "pair", "type": "tag"}],
        redis_url=url,
    )
    for n, (_, stored) in enumerate(pairs):
        cache.store(stored, "an answer", known[embedding_text(stored)], filters={"pair": str(n)})

    def check(threshold: float) -> np.ndarray:
        cache.set_threshold(1 - threshold)
        hits = [
            cache.check(
                vector=known[embedding_text(asked)], filter_expression=Tag("pair") == str(n)
            )
            for n, (asked, _) in enumerate(pairs)
        ]
        return np.array([bool(hit) for hit in hits])

    yield check
    cache.disconnect()
