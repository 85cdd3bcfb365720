"""Codes, quotes, addresses, files and names of code are meant letter by letter."""

from __future__ import annotations

import pytest

from warmup_lib.guard import compatible
from warmup_lib.guard.literals import literals, strings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error E404 in order ABC-123", {"=e404", "=abc-123"}),
        ("write to help@example.org", {"=help@example.org"}),
        ("see https://example.org/a?b=1 now", {"=https://example.org/a?b=1"}),
        ("open src/main.py", {"=src/main.py"}),
        ("what does parse_args() do, and isNull?", {"=parse_args", "=isnull"}),
        ("git commit --amend", {"=--amend"}),
        ("the button \u201cPay now\u201d", {"=pay_now"}),
        ("the word 'late' and `x = 1`", {"=late", "=x_=_1"}),
        ("「残高」とは", {"=残高"}),
        ("it's 5pm, the 2nd, 10kg and I can't", set()),
        ("well-known - or not - and/or", set()),
        ("end of it.then more", set()),
    ],
)
def test_literals(text: str, expected: set[str]) -> None:
    assert literals(text) == expected


def test_strings_of_code() -> None:
    assert strings("print('A b'); x = \"c\"\ny = ''") == {"=a_b", "=c"}
    assert strings("x = 1") == set()


def test_the_way_of_quoting_does_not_matter() -> None:
    assert compatible("what is 'pending'", 'What is "Pending"?')
    assert not compatible("what is 'pending'", "what is 'settled'")
