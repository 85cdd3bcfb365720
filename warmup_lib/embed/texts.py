"""From texts to checked vectors: what is encoded, in which order, and what has no vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warmup_lib.embed.encoder import Encoder, Floats
from warmup_lib.errors import ConfigError
from warmup_lib.keys import embedding_text

_COLLAPSED = 0.9999
_ENOUGH = 8


def encode_texts(
    encoder: Encoder,
    texts: Sequence[str],
    batch_size: int,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Encode the canonical form of texts, those of one length together, so that few are padded.

    An empty text, and one whose end the encoder would cut off, has no vector: it would share one
    with every other text that begins alike, and be served their answers.

    Args:
        encoder: The encoder.
        texts: Texts as stored.
        batch_size: Texts between two calls of `progress`.
        progress: Told how many texts are done.

    Returns:
        Vectors, float32 (texts, dimension), of length 1 or all zero; and which texts have one.

    Raises:
        ConfigError: The encoder gives vectors that can't be right.
    """
    canonical = [embedding_text(text) for text in texts]
    has_vector = np.zeros(len(canonical), dtype=np.bool_)
    vectors = np.zeros((len(canonical), encoder.dimension), dtype=np.float32)
    # Bytes: a Chinese character has three and is a token, a token of English has four or five.
    order = sorted(range(len(canonical)), key=lambda i: (len(canonical[i].encode()), canonical[i]))
    for start in range(0, len(order), batch_size):
        progress(start)
        batch = [i for i in order[start : start + batch_size] if canonical[i]]
        whole = encoder.reads_whole([canonical[i] for i in batch])
        rows = [i for i, fits in zip(batch, whole, strict=True) if fits]
        vectors[rows] = encoder.encode([canonical[i] for i in rows])
        has_vector[rows] = True
    check_vectors(vectors[has_vector])
    progress(len(order))
    return vectors, has_vector


def check_vectors(vectors: Floats) -> None:
    """Refuse vectors that would make every text alike or none.

    Args:
        vectors: Of distinct texts, shape (texts, dimension).

    Raises:
        ConfigError: A value is not finite, a length is not 1, or the vectors are all the same.
    """
    if not np.isfinite(vectors).all():
        raise ConfigError("the encoder gives values that are not numbers: its weights are damaged")
    if (np.abs(np.linalg.norm(vectors, axis=1) - 1.0) > 1e-3).any():
        raise ConfigError("the encoder gives vectors that are not of length 1")
    if len(vectors) >= _ENOUGH and np.square(vectors.mean(axis=0)).sum() > _COLLAPSED:
        raise ConfigError(
            f"the encoder gives {len(vectors)} different texts the same vector: its weights are "
            "not those it was trained to"
        )
