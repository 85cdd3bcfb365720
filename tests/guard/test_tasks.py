"""What is asked about a listing decides, though nearly all of the text is the listing."""

from __future__ import annotations

import pytest

from warmup_lib.guard import compatible
from warmup_lib.guard.tasks import tasks

CODE = "\n```python\ndef find(orders):\n    return orders[0]\n```"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Write unit tests for this:", {"-test"}),
        ("Make this faster", {"-speed"}),
        ("What is the Go version of this code?", {"-translate", "@go"}),
        ("把这段代码翻译成 Python", {"-translate"}),
        ("这段代码太慢", {"-speed"}),
        ("Erkläre den Code", {"-explain"}),
        ("It takes minutes for a million rows, why?", {"-speed"}),
        ("Review this for speed and tests", set()),
        ("这里该测什么", {"-test"}),
        ("Why does this Go code fail?", set()),
        ("what does this print", set()),
    ],
)
def test_tasks(said: str, expected: set[str]) -> None:
    assert tasks(said) == expected


def test_tasks_count_beside_code_only() -> None:
    assert not compatible(f"Make this faster:{CODE}", f"Write tests for this:{CODE}")
    assert compatible(f"Speed this up:{CODE}", f"Make this faster:{CODE}")
    assert compatible("Can I get my card faster", "Can I get my card quickly")
