"""What the history tells of which questions share an answer, and where it tells nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.plan.building import BEFORE, DAY, prompt, rows_of
from warmup_lib.lake import Lake
from warmup_lib.threshold.logged import logged_pairs
from warmup_lib.threshold.pairs import Found


class Near:
    """All texts are alike, those whose digest begins with `far` at a right angle to the rest."""

    encoder = "enc"

    def get(self, digests: Sequence[str]) -> Mapping[str, np.ndarray]:
        axes = np.eye(2, dtype=np.float32)
        return {d: axes[int(d.startswith("far"))] for d in digests}


def row(tenant: str, text: str, answer: str | None, **more: Any) -> dict[str, Any]:
    fields = {"tenant": tenant, "text": text, "text_digest": f"t-{text}", "response": answer}
    return prompt(f"r-{text}", **(fields | more))


def found(path: Path, *days: list[dict[str, Any]], bound: float = 0.2) -> Found:
    lake = Lake(str(path))
    for day, rows in zip((BEFORE, DAY), days, strict=True):
        lake.replace("prompts", {"day": day}, rows_of("prompts", rows))
    return logged_pairs(lake, [BEFORE, DAY], Near(), bound, 0.9)  # type: ignore[arg-type]


LETTERS = "abcdefghijkl"
STEADY = [row("acme", f"about {c}", f"answer {c}", text_digest=f"far-{c}") for c in LETTERS]
"""They come again on the next day with the answer of the first."""


def test_phrasings_share_an_answer_where_one_was_given_to_both(tmp_path: Path) -> None:
    before = [row("acme", "card lost", "Freeze  it."), row("acme", "lost my card", "Call us.")]
    after = [row("acme", "the card is lost", "Call us.\n"), row("acme", "lost my card", "Call us.")]
    made = found(tmp_path, [*before, *STEADY], [*after, *STEADY])
    assert not made.unusable
    ours = [p for p in made.pairs if p.a_digest.startswith("t-")]
    assert {(p.a_digest, p.b_digest, p.wrong) for p in ours} == {
        ("t-card lost", "t-lost my card", True),
        ("t-card lost", "t-the card is lost", True),
    }
    assert made.texts["t-card lost"] == "card lost"


def test_a_context_of_its_own_and_what_has_no_usable_answer_make_no_pair(tmp_path: Path) -> None:
    rows = [
        row("acme", "card lost", "Freeze it."),
        row("acme", "lost my card", "Freeze it.", context_digest="other"),
        row("acme", "the card is lost", None),
        row("acme", "my card got lost", "Freeze it.", unwarmable="redacted"),
    ]
    made = found(tmp_path, [*rows, *STEADY], STEADY)
    assert [p for p in made.pairs if p.a_digest.startswith("t-")] == []


def test_answers_that_vary_by_themselves_tell_nothing(tmp_path: Path) -> None:
    again = [one | {"response": f"another {n}"} for n, one in enumerate(STEADY)]
    made = found(tmp_path, STEADY, [*again[:5], *STEADY[5:]])
    assert list(made.pairs) == []
    assert made.unusable == {
        "acme": "5 of 12 prompts that came again got another answer, so that answers don't tell "
        "which prompts could share one"
    }


def test_too_few_repetitions_do_not_show_that_answers_stay(tmp_path: Path) -> None:
    made = found(tmp_path, STEADY, STEADY[:3])
    assert made.unusable == {
        "acme": "only 3 of its prompts came again on another day, 11 are needed to know whether "
        "answers vary"
    }
