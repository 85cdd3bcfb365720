"""What of a log becomes a field, and which values are one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.dimensions.logs import draw, read, requests
from warmup_lib.dimensions import fields
from warmup_lib.dimensions.codes import distinct
from warmup_lib.tables import REQUESTS


def log(*rows: dict[str, Any]) -> pa.Table:
    base = requests({"question": np.zeros(len(rows), np.int64)}, ["same"] * len(rows)).to_pylist()
    full = [one | {"extra": None} | row for one, row in zip(base, rows, strict=True)]
    return pa.Table.from_pylist(full, schema=REQUESTS.schema)


def test_absent_empty_and_default_are_one_value() -> None:
    done = read(
        log(
            {"locale": None, "params": None, "tools": None},
            {"locale": "", "params": '{"temperature":1,"stream":true}', "tools": "[1]"},
            {"locale": "de", "params": '{"temperature":1.0,"top_p":0.5}'},
            {"locale": " de ", "params": '{"temperature":0,"top_p":0.50}'},
        )
    )
    assert _same(done.values["locale"], [0, 0, 1, 1])
    assert _same(done.values["params.temperature"], [0, 0, 0, 1])
    assert _same(done.values["params.top_p"], [0, 0, 1, 1])
    assert _same(done.values["params.stream"], [0, 1, 0, 0])
    assert done.left_out["model"] == fields.CONSTANT


def test_texts_are_compared_in_their_canonical_form() -> None:
    done = read(
        log(
            {"prompt": "one  question", "response": "an\u00a0answer"},
            {"prompt": "one question", "response": "an answer "},
            {"prompt": "One question", "response": "An answer"},
        )
    )
    assert _same(done.question, [0, 0, 1])
    assert _same(done.answer, [0, 0, 1])


def test_whose_answer_is_its_own() -> None:
    done = read(
        log(
            {},
            {"cache_hit": True},
            {"response": None},
            {"response": ""},
            {"status": 500},
            {"bypass": True},
            {"warmup": True},
            {"health": True},
        )
    )
    assert (done.answer >= 0).tolist() == [True, False, False, False, False, True]
    assert done.asked.tolist() == [True] * 5 + [False]


def test_tenants_and_histories_are_questions_of_their_own() -> None:
    done = read(log({}, {"tenant": "zeta"}, {"history": '[{"role":"user"}]'}, {"history": "[]"}))
    assert _same(done.question, [0, 1, 2, 0])
    assert done.tenants == ["acme", "zeta"]


def test_fields_of_extra_are_found_in_what_is_nested_and_outcomes_left_out() -> None:
    done = read(
        log(
            {"extra": '{"a/b":1,"meta":{"plan~":"x","deep":{"z":1}},"cost":1,"ok":true}'},
            {"extra": '{"a/b":2,"meta":{"plan~":"y","deep":{"z":2}},"cost":2,"weight":0.5}'},
            {"extra": '{"cache_evidence":{"looked":[]},"finishReason":"stop","list":[1]}'},
            {"extra": '{"list":[],"a":{"b":{"c":{"d":{"e":1}}}}}'},
        )
    )
    named = {name for name in done.values if name.startswith("extra.")}
    assert named == {
        "extra.a/b", "extra.meta.plan~", "extra.meta.deep.z", "extra.ok", "extra.weight",
        "extra.list",
    }  # fmt: skip
    assert _same(done.values["extra.list"], [0, 0, 1, 0])
    assert done.left_out["extra.a.b.c.d"] == fields.DEEP
    assert done.left_out["extra.cost"] == fields.OUTCOME
    assert done.left_out["extra.finishReason"] == fields.OUTCOME
    assert done.left_out["extra.cache_evidence.looked"] == fields.OUTCOME


def test_fractions_of_many_values_are_measured() -> None:
    given = {"weight": [n % 30 / 8 for n in range(300)], "factor": [n % 3 / 2 for n in range(300)]}
    done = read(requests(draw(0, 300), np.zeros(300, np.int64), given))
    assert done.left_out["extra.weight"] == fields.MEASURED
    assert distinct(done.values["extra.factor"]) == 3


def test_ids_and_what_is_asked_for_are_left_out() -> None:
    ids = {"trace": [f"t{n}" for n in range(300)], "pair": [f"p{n // 2}" for n in range(300)]}
    rows = requests(draw(0, 300), np.zeros(300, np.int64), ids)
    done = read(rows, "extra.device")
    assert done.left_out["extra.trace"] == fields.VOLATILE
    assert done.left_out["extra.device"] == fields.WANTED
    assert distinct(done.values["extra.pair"]) == 150


def test_hours_are_those_of_the_zone() -> None:
    rows = requests({"question": np.zeros(48, np.int64)}, np.zeros(48, np.int64))
    for zone in ("UTC", "Asia/Kolkata"):
        assert distinct(read(rows, zone=zone).values["hour"]) == 24
    assert distinct(read(rows, zone="UTC").values.get("day", np.zeros(1))) == 1
    assert distinct(read(rows, zone="Asia/Kolkata").values["day"]) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [("extra.response_cost", True), ("extra.startTime", True), ("extra.HTTPError", True),
     ("extra.rating", True), ("extra.user_rating", True), ("extra.credit_rating", False),
     ("extra.unit_price", False), ("extra.plan", False), ("extra.timezone", False),
     ("extra.cost_centre", False)],
)  # fmt: skip
def test_what_is_known_with_the_answer_is_told_by_the_last_word(name: str, said: bool) -> None:
    kept, out = fields.extra_fields([f'{{"{name[6:]}":"VARCHAR"}}'])
    assert (name in out) is said
    assert [f.name for f in kept] == ([] if said else [name])


def _same(numbers: np.ndarray[Any, Any], expected: list[int]) -> bool:
    pairs = set(zip(numbers.tolist(), expected, strict=True))
    return len(pairs) == len(set(expected)) == len(set(numbers.tolist()))
