"""Who goes round the caches and means it, who does so now and then, and what that costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.rows import log_of, row
from warmup_lib.doctor.bypass import look_at_log
from warmup_lib.doctor.callers import Around, around
from warmup_lib.doctor.splits import find_splits

AROUND = {"cache_control": "no-cache"}


def user(number: int, name: str, **given: Any) -> dict[str, Any]:
    return row(number, extra={"user": name}, prompt=f"question {number}") | given


def judged(tmp_path: Path, rows: list[dict[str, Any]]) -> tuple[str, str, Around]:
    log = log_of(tmp_path, rows)
    part = look_at_log(log, find_splits(log))
    return part.status, part.evidence, around(log.rows, lambda one: bool(one.bypass))


def test_a_row_by_itself_is_no_habit(tmp_path: Path) -> None:
    assert judged(tmp_path, [row(0, **AROUND)])[0] == "ok"


@pytest.mark.parametrize("name", ["eval-{}", "3f2b5c1e-0000-4000-8000-{:012d}"])
def test_an_evaluation_with_a_new_user_for_each_request_means_it(tmp_path: Path, name: str) -> None:
    rows = [user(n, f"u{n % 40}") for n in range(200)]
    rows += [user(200 + n, name.format(n), **AROUND) for n in range(40)]
    status, evidence, found = judged(tmp_path, rows)
    assert (status, len(found.stray)) == ("ok", 0)
    assert "40 of them by" in evidence


def test_what_many_do_once_is_no_habit_and_its_share_is_told(tmp_path: Path) -> None:
    drawn = {7, 50, 101, 122, 160, 187}
    rows = [user(n, f"u{n}", **(AROUND if n in drawn else {})) for n in range(200)]
    status, evidence, found = judged(tmp_path, rows)
    assert (status, len(found.stray), found.callers) == ("ok", 6, 6)
    assert "6 of 200 requests go round the caches, 6 here and there (6 callers)" in evidence


@pytest.mark.parametrize(("share", "said"), [(0.03, "ok"), (0.15, "found")])
def test_a_share_of_all_is_told_from_chance(tmp_path: Path, share: float, said: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        rows = [
            row(n, extra={"user": f"u{rng.randrange(100)}"})
            | (AROUND if rng.random() < share else {})
            for n in range(300)
        ]
        assert judged(tmp_path, rows)[0] == said


def test_a_client_that_does_so_now_and_then_is_found(tmp_path: Path) -> None:
    rows = [
        row(n, extra={"user": f"u{n}", "user_agent": "app/3" if n % 4 == 0 else "web"})
        | (AROUND if n % 20 == 0 else {})
        for n in range(400)
    ]
    status, evidence, found = judged(tmp_path, rows)
    assert (status, found.mixed) == ("found", 0.2)
    assert "of one caller, client or tenant 20%" in evidence


def test_strays_that_take_the_hits_are_found(tmp_path: Path) -> None:
    fresh = [user(n, f"u{n}") for n in range(300)]
    again = [
        user(300 + n, f"v{n}", **({} if n % 3 else AROUND)) | {"prompt": f"question {n}"}
        for n in range(12)
    ]
    status, evidence, found = judged(tmp_path, [*fresh, *again])
    assert (status, found.lost, found.repeats) == ("found", 4, 12)
    assert "4 of them could have hit" in evidence


def test_who_asks_for_another_answer_takes_no_hit(tmp_path: Path) -> None:
    rows = [user(n, f"u{n}") for n in range(300)]
    rows += [user(300 + n, f"u{n}", **AROUND) | {"prompt": f"question {n}"} for n in range(12)]
    status, _, found = judged(tmp_path, rows)
    assert (status, found.lost, found.repeats) == ("ok", 0, 12)
