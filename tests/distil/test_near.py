"""Which texts are near duplicates, and which one stands for the others."""

from __future__ import annotations

import csv
import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.distil.near import (
    MAX_CHARS,
    THRESHOLD,
    Text,
    jaccard,
    near_duplicates,
    near_pairs,
    shingles,
)
from warmup_lib.keys import embedding_text


def one(_: str) -> str:
    return ""


def families(found: dict[str, str], digests: list[str]) -> set[frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for digest in digests:
        groups.setdefault(found.get(digest, digest), set()).add(digest)
    return {frozenset(group) for group in groups.values()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab c", {" ab", "ab ", "b c", " c "}),
        ("退款", {" 退款", "退款", "款 "}),
        ("a退", {" a退", "a退 ", "退 "}),
        ("?", {" ? "}),
    ],
)
def test_shingles_are_threes_and_in_unspaced_scripts_twos(text: str, expected: set[str]) -> None:
    assert shingles(text) == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("后天上海会下雪吗", "后天上海会下雪吗?"),
        ("请问,怎么付款", "请问怎么付款"),
        ("天気はどう。", "天気は、どう"),
        ("where is my parcel", "where is my parcel?!"),
        ("¿dónde está mi tarjeta?", "dónde está mi tarjeta"),
        ('he said "no", then left', "he said no then left"),
    ],
)
def test_punctuation_of_sentences_does_not_tell_texts_apart(a: str, b: str) -> None:
    assert jaccard(shingles(a), shingles(b)) == 1.0


@pytest.mark.parametrize(("a", "b"), [("x = a.b", "x = a,b"), ("x<y", "x>y"), ("a+b", "a-b")])
def test_punctuation_inside_code_does(a: str, b: str) -> None:
    assert jaccard(shingles(a), shingles(b)) < THRESHOLD


def test_jaccard_by_hand() -> None:
    assert jaccard(frozenset("abcd"), frozenset("bcde")) == 3 / 5
    assert jaccard(frozenset(), frozenset()) == 1.0


def test_the_most_requested_stands_for_the_family_and_the_smallest_digest_on_ties() -> None:
    texts = [
        Text("d3", "how do i renew my passport please", 5),
        Text("d1", "how do i renew my passport, please?", 9),
        Text("d2", "how do i renew my passports please", 9),
        Text("d4", "where is the nearest branch", 50),
    ]
    assert near_duplicates(texts, one) == {"d2": "d1", "d3": "d1"}


def test_near_is_transitive() -> None:
    step = "the quick brown fox jumps over the lazy dog near the river bank"
    chain = [step, step + " now", step + " now and here", step + " now and here, then gone"]
    assert jaccard(shingles(chain[0]), shingles(chain[3])) < THRESHOLD
    assert all(jaccard(shingles(a), shingles(b)) >= THRESHOLD for a, b in itertools.pairwise(chain))
    texts = [Text(f"d{i}", text, 1) for i, text in enumerate(chain)]
    assert near_duplicates(texts, one) == {"d1": "d0", "d2": "d0", "d3": "d0"}


def test_what_the_signature_tells_apart_is_never_near() -> None:
    texts = [
        Text("d1", "please transfer the amount of 100 euro to my savings account", 1),
        Text("d2", "please transfer the amount of 900 euro to my savings account", 1),
        Text("d3", "please transfer the amount of 100 euro to my savings account now", 1),
    ]
    assert near_duplicates(texts, lambda text: "9" if "900" in text else "1") == {"d3": "d1"}
    assert set(near_duplicates(texts, one)) == {"d2", "d3"}


def test_empty_and_very_long_texts_are_nobodys_near_duplicate() -> None:
    long = "a word " * (MAX_CHARS // 7 + 1)
    texts = [Text("d1", long, 1), Text("d2", long + "x", 1), Text("d3", "", 1), Text("d4", "", 1)]
    assert near_duplicates(texts, one) == {}


VOCABULARY = ["refund", "card", "lost", "my", "the", "退款", "银行卡", "please"]
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=3)


@settings(deadline=None)
@given(st.lists(WORDS, unique_by=tuple, max_size=12), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_families_hold_what_is_near(
    sentences: list[list[str]], shuffle: random.Random
) -> None:
    texts = [Text(f"d{i:02}", " ".join(w), 1 + i % 3) for i, w in enumerate(sentences)]
    found = near_duplicates(texts, one)
    assert near_duplicates(shuffle.sample(texts, len(texts)), one) == found
    by_digest = {t.digest: t for t in texts}
    for digest, representative in found.items():
        assert representative not in found
        assert by_digest[representative].requests >= by_digest[digest].requests
    for a, b in itertools.combinations(texts, 2):
        same = found.get(a.digest, a.digest) == found.get(b.digest, b.digest)
        if shingles(a.text) == shingles(b.text):
            assert same
    # A family of more than one text holds, for each text, another one that is near it.
    for family in families(found, list(by_digest)):
        for digest in family if len(family) > 1 else ():
            assert any(
                jaccard(shingles(by_digest[digest].text), shingles(by_digest[o].text)) >= THRESHOLD
                for o in family - {digest}
            )


@pytest.mark.realdata
def test_hashing_finds_what_comparing_all_pairs_finds(real_data: Path) -> None:
    with (real_data / "banking77" / "train.csv").open(encoding="utf-8", newline="") as file:
        texts = sorted({embedding_text(row["text"]) for row in csv.DictReader(file)})[:1000]
    sets = [shingles(text) for text in texts]
    exact = {
        (i, j)
        for i, j in itertools.combinations(range(len(texts)), 2)
        if jaccard(sets[i], sets[j]) >= THRESHOLD
    }
    found = set(near_pairs(texts))
    assert len(exact) > 10
    assert found <= exact, "a pair that is not near was made"
    assert len(found) >= 0.99 * len(exact)
