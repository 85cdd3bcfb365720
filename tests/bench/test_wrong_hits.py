"""On BANKING77 the calibrated threshold keeps its bound, and hits more than a plain cosine can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.composed_pairs import KINDS, composed, reworded
from bench.wrong_hits import SAME, Cases, calibrated, cases, fixed, questions, share
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.keys import embedding_text

TEXTS = [
    "How do I reset my PIN?",
    "I haven't received my card after 2 weeks.",
    "why was i charged",
    "The transfer is pending",
]


@pytest.mark.parametrize("kind", KINDS)
def test_composed_pairs_differ_and_are_the_same_each_time(kind: str) -> None:
    made = [composed(kind, text) for text in TEXTS]
    assert made == [composed(kind, text) for text in TEXTS]
    assert all(pair is None or pair[0] != pair[1] for pair in made)
    assert sum(pair is not None for pair in made) >= 3


def test_what_is_composed() -> None:
    assert composed("negated", "I haven't received it") == (
        *("I haven't received it", "I have received it"),
    )
    changed = composed("number", "I haven't received my card after 2 weeks.")
    assert changed is not None
    assert changed[1].startswith("I haven't received my card after ")
    assert all(reworded(text)[0] == text != reworded(text)[1] for text in TEXTS)


def test_counting_by_hand() -> None:
    kinds = np.array([SAME, SAME, "number", "number"])
    passed = np.array([True, False, True, False])
    made = Cases(kinds, [("a", "b")] * 4, np.array([0.9, 0.9, 0.95, 0.95]), passed)
    assert made.counts(0.9, guarded=True) == (1, 1)
    assert made.counts(0.92, guarded=True) == (0, 1)
    assert made.counts(0.9, guarded=False) == (2, 2)
    assert share(1, 1) == 0.5
    assert share(0, 0) == 0
    assert fixed(made, 0.5) == 0.7
    assert fixed(made, 0.4) == 1.0


@pytest.mark.realdata
def test_wrong_hits_stay_under_one_percent_and_hits_above_a_fixed_threshold(
    real_data: Path, tmp_path: Path
) -> None:
    config = Config()
    encode = open_encoder(config).encode
    stored, asked = (questions(real_data, split, encode) for split in ("train", "test"))
    train, test = cases(stored, stored, 2400, encode), cases(asked, stored, 750, encode)
    assert (~test.ought).sum() == test.ought.sum() >= 2900
    known = set(map(embedding_text, stored.texts))
    assert not any(
        embedding_text(a) in known
        for kind, (a, _) in zip(test.kinds, test.texts, strict=True)
        if kind == SAME
    )
    ours = calibrated(train, config, tmp_path)
    assert ours < 1
    right, wrong = test.counts(ours, guarded=True)
    assert share(right, wrong) <= config.threshold.bound
    assert right > 1000
    theirs = fixed(train, share(*train.counts(ours, guarded=True)))
    assert right >= test.counts(theirs, guarded=False)[0]
    # Whatever a plain cosine is tuned to, at no more wrong hits it serves fewer right ones.
    for at in np.arange(0.8, 1.0, 0.01):
        plain = test.counts(float(at), guarded=False)
        assert share(*plain) > share(right, wrong) or plain[0] <= right
