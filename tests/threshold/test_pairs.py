"""Each question is paired with the nearest one that could serve it."""

from __future__ import annotations

import numpy as np

from warmup_lib.threshold.pairs import Pair, Question, nearest_pairs


def at(degrees: float) -> np.ndarray:
    angle = np.deg2rad(degrees)
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


def question(digest: str, answer: str, *, text: str = "card lost", **more: str) -> Question:
    fields = {"tenant": "acme", "place": "one"} | more
    return Question(fields["tenant"], digest, text, frozenset([answer]), fields["place"])


VECTORS = {"a": at(0), "b": at(10), "c": at(14), "d": at(90)}


def found(*questions: Question) -> list[tuple[str, str, bool]]:
    return [(p.a_digest, p.b_digest, p.wrong) for p in nearest_pairs(questions, VECTORS)]


def test_a_pair_that_both_lead_to_counts_once_and_far_ones_not_at_all() -> None:
    asked = [question("a", "x"), question("b", "x"), question("c", "y"), question("d", "y")]
    assert found(*asked) == [("a", "b", False), ("b", "c", True)]
    first = nearest_pairs(asked, VECTORS)[0]
    assert first == Pair("acme", "a", "b", first.similarity, False)
    assert abs(first.similarity - np.cos(np.deg2rad(10))) < 1e-6


def test_tenants_places_and_signatures_are_never_paired() -> None:
    assert not found(question("a", "x"), question("b", "x", tenant="zeta"))
    assert not found(question("a", "x"), question("b", "x", place="two"))
    assert not found(question("a", "x"), question("b", "x", text="card not lost"))
    assert not found(question("a", "x"), question("without a vector", "x"))


def test_one_common_answer_is_enough_and_questions_of_one_text_are_one() -> None:
    twice = [question("a", "x"), question("a", "y"), question("b", "y")]
    assert found(*twice) == [("a", "b", False)]
