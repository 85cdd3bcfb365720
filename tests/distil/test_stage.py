"""prompts and heads out of the requests of a day."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.config import Config
from warmup_lib.distil.stage import run
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake

DAY = "2026-03-14"
Row = dict[str, Any]


def content(root: Path) -> dict[str, bytes]:
    """Return the part files of `prompts` and `heads`, by name."""
    return {
        f"{table}/{file.name}": file.read_bytes()
        for table in ("prompts", "heads")
        for file in (root / table / f"day={DAY}").glob("*.parquet")
    }


def some_requests(make: Callable[..., Row], count: int, seed: int) -> list[Row]:
    """Return requests that disagree on whatever a group-by has to settle."""
    draw = random.Random(seed)
    texts = [
        "Reset my PIN",
        "reset  my PIN",
        "reset my PIN?",
        "where is my parcel",
        "退款",
        "退款?",
    ]
    return [
        make(
            draw.randrange(600),
            draw.choice(texts),
            tenant=draw.choice(["acme", "zeta"]),
            system_prompt=draw.choice([None, "S", f"It is 10:{draw.randrange(60):02}."]),
            request_id=f"r{number}",
            locale=draw.choice([None, "en", "de"]),
            response=draw.choice([None, "yes", "no"]),
            status=draw.choice([None, 200, 500]),
            bypass=draw.random() < 0.2,
            redacted=draw.random() < 0.2,
            warmup=draw.random() < 0.1,
            ttft_ms=draw.choice([None, draw.uniform(1, 900)]),
            chunk_ids=draw.choice([None, ["c1"], ["c1", "c2"]]),
        )
        for number in range(count)
    ]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 120), cuts=st.sets(st.integers(1, 119)))
def test_neither_order_nor_parts_change_a_byte_and_no_demand_is_lost(
    seed: int,
    count: int,
    cuts: set[int],
    tmp_path_factory: pytest.TempPathFactory,
    request_row: Callable[..., Row],
    store_requests: Callable[..., Lake],
) -> None:
    root = tmp_path_factory.mktemp("lake")
    rows = some_requests(request_row, count, seed)
    shuffled = random.Random(seed).sample(rows, len(rows))
    edges = [0, *sorted(c for c in cuts if c < count), count]
    parts = [shuffled[a:b] for a, b in itertools.pairwise(edges)]
    whole = store_requests(root / "whole", rows)
    one = run(whole, DAY, Config())
    two = run(store_requests(root / "parts", *parts), DAY, Config())
    assert content(root / "whole") == content(root / "parts")
    assert one.facts == two.facts
    demand = sum(not row["warmup"] for row in rows)
    assert sum(whole.read("prompts", {"day": DAY})["requests"].to_pylist()) == demand
    assert one.facts["demand"] == demand


def test_a_rerun_gives_the_same_partition_and_leaves_other_days_alone(
    tmp_path: Path, request_row: Callable[..., Row], store_requests: Callable[..., Lake]
) -> None:
    lake = store_requests(tmp_path, some_requests(request_row, 80, 1))
    store_requests(tmp_path, [request_row(1, "hello")], day="2026-03-13")
    run(lake, "2026-03-13", Config())
    run(lake, DAY, Config())
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    run(lake, DAY, Config())
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert lake.read("prompts", {"day": "2026-03-13"})["text"].to_pylist() == ["hello"]


def near(lake: Lake) -> dict[tuple[str, str], str | None]:
    """Return (tenant, text) -> text of what stands for it."""
    rows = lake.read("prompts", {"day": DAY}).to_pylist()
    texts = {row["text_digest"]: row["text"] for row in rows}
    return {(r["tenant"], r["text"]): r["near_of"] and texts[r["near_of"]] for r in rows}


def test_near_duplicates_are_of_one_tenant_and_context(
    tmp_path: Path, request_row: Callable[..., Row], store_requests: Callable[..., Lake]
) -> None:
    asked = "how do I renew my passport please"
    rows = [
        request_row(1, asked),
        request_row(2, asked),
        request_row(3, asked + "?"),
        request_row(4, asked + "!", tenant="zeta"),
        request_row(5, asked + " ...", system_prompt="Another context."),
        request_row(6, asked + ".", redacted=True),
        request_row(7, "how do I not renew my passport please"),
        request_row(8, "how do I renew my 2 passports please"),
    ]
    lake = store_requests(tmp_path, rows)
    report = run(lake, DAY, Config())
    stands = {key: value for key, value in near(lake).items() if value is not None}
    assert stands == {("acme", asked + "?"): asked}
    assert report.facts["near_duplicates"] == 1


def test_case_variants_are_one_text_and_count_together(
    tmp_path: Path, request_row: Callable[..., Row], store_requests: Callable[..., Lake]
) -> None:
    asked = "how do I renew my passport please"
    rows = [
        request_row(1, asked),
        request_row(2, asked.upper()),
        request_row(3, asked + " now"),
        request_row(4, asked + " now"),
        request_row(5, asked.title()),
    ]
    lake = store_requests(tmp_path, rows)
    run(lake, DAY, Config())
    found = near(lake)
    # Three requests in three cases outweigh two in one.
    assert [found["acme", text] for text in (asked, asked.upper(), asked.title())] == [None] * 3
    assert found["acme", asked + " now"].casefold() == asked.casefold()


def test_heads_with_a_moment_in_them_are_volatile(
    tmp_path: Path, request_row: Callable[..., Row], store_requests: Callable[..., Lake]
) -> None:
    rows = [request_row(i, "hi", system_prompt=f"Help. It is 10:0{i}.") for i in range(3)]
    rows += [request_row(9, "hi", system_prompt="Help. Be brief.")]
    lake = store_requests(tmp_path, rows)
    report = run(lake, DAY, Config())
    heads = lake.read("heads", {"day": DAY}).to_pylist()
    told = "volatile: timestamp at characters 12-17"
    assert sorted(h["unwarmable"] or "" for h in heads) == ["", told, told, told]
    assert report.facts["unwarmable_heads"] == {"volatile": 3}
    templates = {h["system_prompt"]: h["template_digest"] for h in heads}
    assert len({templates[f"Help. It is 10:0{i}."] for i in range(3)}) == 1
    assert len(set(templates.values())) == 2
    assert (report.rows_in, report.rows_out) == (4, 4 + 4)


CODE = "Fix this\n```python\n{}\n```"


def test_prompts_of_one_template_stay_prompts_of_their_own(
    tmp_path: Path, request_row: Callable[..., Row], store_requests: Callable[..., Lake]
) -> None:
    rows = [
        request_row(1, "where is order 4711", response="one"),
        request_row(2, "where is order 12?", response="two"),
        request_row(3, "Where is order 12?", tenant="zeta"),
        request_row(4, CODE.format("x = 1")),
        request_row(5, CODE.format("y   = 'a'")),
        request_row(6, CODE.format("y == 'a'")),
        request_row(7, CODE.format("y = = 1")),
        request_row(8, "") | {"prompt": None},
    ]
    lake = store_requests(tmp_path, rows)
    report = run(lake, DAY, Config())
    prompts = lake.read("prompts", {"day": DAY}).to_pylist()
    assert len({row["response_digest"] for row in prompts}) == len(prompts) == 8
    templates = {row["text"]: row["template_digest"] for row in prompts}
    order, code, compared, broken = (
        {template for text, template in templates.items() if text and piece in text}
        for piece in ("order", "   = 'a'", "==", "= =")
    )
    assert len(order) == 1
    assert code == {templates[CODE.format("x = 1")]}
    assert len(order | code | compared | broken) == 4
    assert templates[None] is None
    assert report.facts["templates"] == 4
    assert (report.facts["code_blocks"], report.facts["code_not_parsed"]) == (4, 1)
    answers = {row["text"]: row["response"] for row in prompts if row["tenant"] == "acme"}
    assert (answers["where is order 4711"], answers["where is order 12?"]) == ("one", "two")


def test_a_day_of_our_own_traffic_only_leaves_empty_partitions(
    tmp_path: Path, request_row: Callable[..., Row], store_requests: Callable[..., Lake]
) -> None:
    lake = store_requests(tmp_path, [request_row(1, "hi", warmup=True)])
    report = run(lake, DAY, Config())
    assert report.facts["demand"] == 0
    assert lake.days("prompts") == lake.days("heads") == [DAY]
    assert lake.read("prompts", {"day": DAY}).num_rows == 0


def test_a_day_without_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="run `ingest`"):
        run(Lake(str(tmp_path)), DAY, Config())
