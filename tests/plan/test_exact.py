"""The best choice, by trying everything; and what the solver prints stays out of the output."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings

from tests.plan.instances import brute, flat, instance, optimum, problems
from warmup_lib.plan.exact import _quiet, exact, improved
from warmup_lib.plan.problem import NO_CAP, Groups, Problem


@settings(max_examples=50, deadline=None)
@given(problem=problems())
def test_the_best_choice_is_the_one_of_trying_everything(problem: Problem) -> None:
    found = exact(problem)
    assert found is not None
    assert (found.short, found.value) == brute(problem)
    if len(problem.value) and problem.groups:
        assert optimum(problem) == brute(problem)
    assert found.short == problem.short(found.rows)
    assert found.value == problem.worth(found.rows) <= found.bound <= found.value + 1
    assert problem.allowed(found.rows)


def test_a_choice_is_improved_only_where_a_change_costs_least() -> None:
    problem = flat([5, 6, 7, 8], [1, 1, 1, 1], 2)
    rows = np.array([True, True, False, False])
    loss = np.array([0.0, 9.0, 9.0, 1.0])
    better, bound = improved(problem, rows, loss, 2)
    assert (better.tolist(), bound) == ([False, True, False, True], None)
    best, bound = improved(problem, rows, loss, 4)
    assert (best.tolist(), bound) == ([False, False, True, True], 15)


def test_a_choice_that_lacks_less_is_better_whatever_it_is_worth() -> None:
    floor = Groups(np.array([0, 0, -1]), np.array([2]), np.array([NO_CAP]))
    problem = flat([1, 1, 90], [1, 1, 2], 2, floor)
    better, bound = improved(problem, np.array([False, False, True]), np.zeros(3), 3)
    assert (better.tolist(), bound) == ([True, True, False], 2)
    same, _ = improved(problem, better, np.zeros(3), 3)
    assert (same == better).all()


def test_of_equal_choices_the_given_one_stays() -> None:
    problem = flat([5, 5, 5], [1, 1, 1], 1)
    rows = np.array([True, False, False])
    assert improved(problem, rows, np.zeros(3), 3) == (pytest.approx(rows), 5)


def test_few_nodes_are_a_limit_that_does_not_depend_on_time() -> None:
    problem = instance(6, 400)
    one, again = exact(problem, nodes=1), exact(problem, nodes=1)
    assert one is not None
    assert again is not None
    assert (one.rows == again.rows).all()
    best = exact(problem)
    assert best is not None
    assert one.value <= best.value <= one.bound


def test_nothing_that_is_printed_past_python_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    print("before")
    with _quiet():
        os.write(1, b"noise")
    print("after")
    assert capfd.readouterr().out == "before\nafter\n"
