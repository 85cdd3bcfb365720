"""One rule for reader, log, causes and doctor, whatever form the headers have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.datastructures import Headers

from tests.doctor.rows import KEYS, log_of, rows
from tests.explain.made import asked, row_of
from warmup_lib.bypass import by_header, joined, pragma_in
from warmup_lib.causes import Cause
from warmup_lib.doctor import bypass
from warmup_lib.doctor.splits import find_splits
from warmup_lib.explain.rows import bypassed
from warmup_lib.keys import Request
from warmup_lib.reader import Cache, Found, SyncReader, log_row


@pytest.mark.parametrize(
    ("said", "around"),
    [
        ("no-cache", True),
        ("No-Store, private", True),
        ("max-age=0", True),
        ('max-age="00"', True),
        ("max-age=60", False),
        ("x-max-age=0", False),
        ("s-maxage=0", False),
        ("no-cache-hint", False),
        ("x-no-store", False),
        (b"no-cache", False),
        (None, False),
    ],
)
def test_what_a_header_says(said: Any, around: bool) -> None:
    assert by_header(said) is by_header(None, said) is around


TWICE = [(b"cache-control", b"no-store"), (b"Cache-Control", b"max-age=60")]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (Headers(raw=TWICE), "no-store, max-age=60"),
        (Headers(raw=TWICE[::-1]), "max-age=60, no-store"),
        (TWICE, "no-store, max-age=60"),
        (dict(TWICE), "no-store, max-age=60"),
        ({"CACHE-CONTROL": "no-cache"}, "no-cache"),
        ({"cache-control": None, 7: "no-cache", "cache-Control": "private"}, "private"),
    ],
)
def test_a_repeated_header_is_one_with_commas_for_lookup_and_log_alike(
    headers: Any, said: str
) -> None:
    assert joined(headers)["cache-control"] == said
    cache = Cache("redis://127.0.0.1:1/0", KEYS, "e", 8, timeout_s=0.1)
    request = Request("acme", "m", "How?")
    with SyncReader(cache) as reader:
        found = reader.lookup(request, headers=headers)
    assert found.evidence.bypass == ("header" if by_header(said) else None)
    at = datetime(2026, 3, 14, tzinfo=UTC)
    row = log_row("g", at, request, [], Found(False), headers=headers)
    assert row["cache_control"] == said


@pytest.mark.parametrize(
    "extra",
    [
        {"headers": {"Pragma": "no-cache"}},
        {"metadata": {"pragma": "no-cache"}},
        {"metadata": {"headers": {"pragma": "no-cache"}}, "headers": {"accept": "x"}},
        {"body": {"metadata": {"headers": {"pragma": "no-cache"}}}},
    ],
)
def test_pragma_is_a_header_in_causes_too(extra: dict[str, Any]) -> None:
    assert pragma_in(extra) == "no-cache"
    one = asked(bypass=True)
    logged = [row_of(one, **extra), row_of(one, headers={"accept": "x"})]
    assert [verdict.cause for _, verdict in bypassed(pa.Table.from_pylist(logged))] == [
        Cause.BYPASS_HEADER,
        Cause.BYPASS_PARAMETER,
    ]


def test_pragma_is_a_header_for_the_doctor_too(tmp_path: Path) -> None:
    sick = rows(80)
    for n in range(0, 80, 9):
        sick[n]["headers"] = {"pragma": "no-cache"}
    log = log_of(tmp_path, sick)
    assert "(9 by header;" in bypass.look_at_log(log, find_splits(log)).evidence
