"""The default encoder."""

from __future__ import annotations

import numpy as np
import pytest

from warmup_lib.embed.encoder import MAX_CHARS
from warmup_lib.embed.universal import UniversalSentenceEncoder


@pytest.fixture(scope="module")
def encoder() -> UniversalSentenceEncoder:
    return UniversalSentenceEncoder()


def test_vectors_are_of_length_one_in_order_and_the_same_in_any_batch(
    encoder: UniversalSentenceEncoder,
) -> None:
    texts = [f"question {number} about my card" for number in range(150)]
    together = encoder.encode(texts)
    assert together.shape == (150, 512)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    alone = np.concatenate([encoder.encode([text]) for text in texts[::37]])
    np.testing.assert_allclose(together[::37], alone, atol=1e-5)
    assert encoder.encode([]).shape == (0, 512)


def test_one_meaning_in_english_and_chinese_is_near(encoder: UniversalSentenceEncoder) -> None:
    english, chinese, other = encoder.encode(
        ["how can the password be reset", "怎样重置密码", "后天上海会下雪吗"]
    )
    assert english @ chinese > 0.7
    assert english @ other < 0.3


def test_the_end_of_a_long_text_counts(encoder: UniversalSentenceEncoder) -> None:
    start = "tell me about the weather in the mountains. " * 100
    a, b = encoder.encode([start, start + "refund my card payment. " * 100])
    assert a @ b < 0.95


def test_texts_beyond_the_limit_are_not_read(encoder: UniversalSentenceEncoder) -> None:
    assert encoder.reads_whole(["", "x" * MAX_CHARS, "x" * (MAX_CHARS + 1)]) == [True, True, False]
