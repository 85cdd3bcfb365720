"""Logs whose truth is known are told right: what matters, what only seems to, what is chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samples.generate import generate
from samples.shipped import Shipped
from tests.dimensions.logs import SIX, Drawn, Ints, draw, read, requests, study
from warmup_lib.config import Config
from warmup_lib.dimensions import fields
from warmup_lib.dimensions.report import facts
from warmup_lib.dimensions.stage import of_files
from warmup_lib.dimensions.study import Study
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake

SEEDS = range(4)


def chance(drawn: Drawn, ways: int) -> Ints:
    """One of several phrasings for each request, as sampling at temperature 1 gives."""
    return np.random.default_rng(99).integers(0, ways, len(drawn["question"]))


def opposite(drawn: Drawn) -> Ints:
    return (drawn["ab_arm"] + drawn["extra.device"]) % 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("causal", SIX)
def test_the_one_field_of_six_that_changes_answers_is_the_whole_allow_list(
    causal: str, seed: int
) -> None:
    done = study(draw(seed, 4000, 20), lambda d: d[causal])
    assert done.suggested == (causal,)
    assert done.schemes["suggested"].wrong == 0
    assert done.schemes["suggested"].judged > 500
    assert done.schemes["question_only"].wrong > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("needed", "answer"),
    [
        (("user_segment", "extra.device"), lambda d: d["user_segment"] * 10 + d["extra.device"]),
        # Neither arm nor device tells anything by itself.
        (("ab_arm", "extra.device"), opposite),
        (("user_segment",), lambda d: d["user_segment"] * 10 + chance(d, 4)),
        (("ab_arm", "extra.device"), lambda d: opposite(d) * 10 + chance(d, 4)),
        ((), lambda d: chance(d, 4)),
        ((), lambda d: 0 * d["question"]),
        # It changes answers of two questions only.
        (("user_segment",), lambda d: d["user_segment"] * (d["question"] < 2)),
    ],
    ids=["two", "interaction", "noisy", "noisy interaction", "noise", "none", "rarely"],
)
def test_what_answers_depend_on_is_found_and_nothing_else(
    needed: tuple[str, ...], answer: Callable[[Drawn], Ints], seed: int
) -> None:
    done = study(draw(seed, 4000, 40), answer)
    assert done.suggested == needed


def test_an_interaction_is_found_though_the_user_decides_both_fields() -> None:
    drawn = draw(5, 4000, 40)
    rng = np.random.default_rng(5)
    for name in ("ab_arm", "extra.device"):
        drawn[name] = rng.integers(0, 2, 500)[drawn["session_id"]]
    assert study(drawn, opposite).suggested == ("ab_arm", "extra.device")


def test_a_field_that_goes_along_with_one_that_matters_is_told_not_to_matter() -> None:
    done = study(draw(1, 8000, 80), lambda d: d["user_segment"])
    region = facts(done, None)["dimensions"]["extra.region"]
    assert region["verdict"] == "not_needed"
    assert region["p_alone"] < 1e-9
    assert region["effect_alone"] > 0.5
    assert region["p"] == 1.0
    assert region["effect"] == 0.0


def test_two_fields_that_are_always_equal_can_not_be_told_apart() -> None:
    drawn = draw(1, 3000, 20)
    drawn["extra.region"] = drawn["user_segment"]
    done = study(drawn, lambda d: d["user_segment"])
    assert done.suggested == ("user_segment",)
    assert done.same_as == {"extra.region": "user_segment"}
    assert any("can't tell the two apart" in said for said in facts(done, None)["says"])


def test_the_noise_floor_is_what_differs_where_everything_agrees() -> None:
    drawn = draw(2, 6000, 8) | {"session_id": np.zeros(6000, np.int64)}
    del drawn["hour"]
    done = study(drawn, lambda d: d["user_segment"] * 10 + chance(d, 4))
    assert done.noise_floor == pytest.approx(0.75, abs=0.03)
    assert done.schemes["suggested"].wrong_rate == pytest.approx(0.75, abs=0.03)
    assert done.schemes["question_only"].wrong_rate == pytest.approx(0.9375, abs=0.03)


def test_answers_that_change_with_the_day_are_the_business_of_the_ttl() -> None:
    drawn = draw(3, 6000, 10)
    done = study(drawn, lambda _: np.arange(6000) // 1000)
    assert done.suggested == ()
    assert done.verdicts["day"] == "age"
    assert any("TTL" in said for said in facts(done, None)["says"])


def test_too_few_repeats_are_told_and_nothing_is_suggested() -> None:
    drawn = draw(4, 200)
    drawn["question"] = np.arange(200) // 2
    done = study(drawn, lambda _: np.arange(200))
    assert done.suggested == ()
    assert {done.verdicts[name] for name in SIX} == {"undecided"}
    once = study(drawn | {"question": np.arange(200)}, lambda d: d["question"])
    assert once.verdicts["user_segment"] == "follows"
    assert "nothing can be said" in facts(once, None)["says"][0]


def test_where_no_two_answers_are_equal_nothing_is_said_not_to_matter() -> None:
    done = study(draw(4, 3000, 20), lambda d: np.arange(len(d["question"])))
    assert done.suggested == ()
    assert {done.verdicts[name] for name in SIX} == {"undecided"}
    said = facts(done, None)["says"]
    assert not any("alone makes the key" in one or "not needed" in one for one in said)
    assert "100.00 % of hits would give another answer" in said[0]


def test_where_the_question_alone_is_seen_to_make_the_key_it_is_said() -> None:
    said = facts(study(draw(4, 3000, 100), lambda d: d["question"]), None)["says"]
    assert said[0] == "No field was found that changes answers: the question alone makes the key."


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("flags", [["x"], ["y"]]),
        ("credit_rating", ["A", "B"]),
        ("factor", [0.5, 1.5]),
        ("deep", [{"er": {"est": "x"}}, {"er": {"est": "y"}}]),
    ],
    ids=["list", "rating", "fractions", "nested"],
)
def test_a_field_of_an_odd_kind_that_matters_is_found(name: str, values: list[Any]) -> None:
    drawn = draw(9, 2000, 20)
    causal = np.random.default_rng(9).integers(0, 2, 2000)
    done = Study(read(requests(drawn, causal, {name: [values[n] for n in causal]})))
    assert done.suggested == ("extra.deep.er.est" if name == "deep" else f"extra.{name}",)
    assert done.schemes["suggested"].wrong == 0


@pytest.mark.parametrize("causal", [("switch",), ("switch", "lever")])
def test_of_many_fields_none_that_matters_is_passed_over(causal: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    drawn = draw(1, 4000, 20)
    more = {f"n{k}": rng.integers(0, 400, 4000).tolist() for k in range(30)}
    more |= {name: rng.integers(0, 2, 4000).tolist() for name in ("switch", "lever")}
    answer = np.sum([more[name] for name in causal], axis=0) % 2
    done = Study(read(requests(drawn, answer, more)))
    assert done.suggested == tuple(sorted(f"extra.{name}" for name in causal))
    assert len(done.log.values) == fields.MOST
    dropped = {n for n, why in done.log.left_out.items() if why == fields.TOO_MANY}
    assert dropped <= {f"extra.n{k}" for k in range(30)} | {"session_id"}


def test_many_fields_of_questions_that_never_come_again_tell_nothing() -> None:
    drawn = {"question": np.arange(100)}
    more = {f"n{k}": [n % (k + 2) for n in range(100)] for k in range(30)}
    done = Study(read(requests(drawn, np.zeros(100, np.int64), more)))
    assert len(done.log.values) == fields.MOST
    assert "nothing can be said" in facts(done, None)["says"][0]


def test_what_was_left_out_is_told_where_answers_differ_without_a_field() -> None:
    drawn = draw(2, 3000, 8) | {"session_id": np.zeros(3000, np.int64)}
    del drawn["hour"]
    answer = np.random.default_rng(2).integers(0, 2, 3000)
    said = facts(Study(read(requests(drawn, answer, {"weather_at": answer.tolist()}))), None)
    assert said["left_out"]["extra.weather_at"] == fields.OUTCOME
    told = " ".join(said["says"])
    assert "by chance (sampling), or by what was left out (extra.weather_at)" in told
    assert "alone makes the key" not in told


def test_keys_grow_with_every_field_and_costs_are_their_growth() -> None:
    done = study(draw(6, 4000), lambda d: d["user_segment"])
    keys = [step.merging.keys for step in done.growth]
    assert keys == sorted(keys)
    assert done.growth[0].merging.keys == done.schemes["question_only"].keys
    assert done.growth[1].added == "user_segment"
    assert keys[-1] == done.schemes["full"].keys
    assert done.growth[-1].possible == 60 * 500 * 4 * 2 * 24 * 3 * 4
    assert done.costs_most == "session_id"
    suggested = done.schemes["suggested"]
    assert keys[1] == suggested.keys
    for name in set(SIX) - {"user_segment"}:
        alone = len({*zip(*(_told(done, n) for n in ("user_segment", name)), strict=True)})
        assert done.keys_added[name] == alone - suggested.keys


def _told(done: Study, name: str) -> list[tuple[int, int]]:
    return list(zip(done.log.question.tolist(), done.log.values[name].tolist(), strict=True))


@settings(max_examples=15)
@given(st.sampled_from(sorted(set(SIX) - {"hour", "user_segment"})), st.integers(0, 2**32))
def test_labels_of_a_field_that_changes_nothing_change_nothing(name: str, seed: int) -> None:
    drawn = draw(7, 1500, 12)
    before = facts(study(drawn, lambda d: d["user_segment"]), None)
    order = np.random.default_rng(seed).permutation(1500)
    after = facts(study(drawn | {name: drawn[name][order]}, lambda d: d["user_segment"]), None)
    assert after["suggested"] == before["suggested"] == ["user_segment"]
    for scheme in ("suggested", "contract", "question_only"):
        assert after["schemes"][scheme] == before["schemes"][scheme]
    for other in set(SIX) - {name}:
        assert after["dimensions"][other]["verdict"] == before["dimensions"][other]["verdict"]


@settings(max_examples=15)
@given(st.sampled_from(sorted(set(SIX) - {"hour"})), st.integers(0, 2**32))
def test_what_values_are_called_changes_nothing_at_all(name: str, seed: int) -> None:
    drawn = draw(8, 1500, 12)
    before = facts(study(drawn, lambda d: d["user_segment"] * 2 + chance(d, 2)), None)
    names = np.random.default_rng(seed).permutation(int(drawn[name].max()) + 1)
    renamed = requests(
        drawn | {name: names[drawn[name]] + 7}, drawn["user_segment"] * 2 + chance(drawn, 2)
    )
    after = facts(Study(read(renamed)), None)
    assert _rounded(after) == _rounded(before)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, list) else value


def test_the_sample_log_depends_on_revision_and_system_prompt(tmp_path: Path) -> None:
    generate(tmp_path / "log", Shipped(), scale=0.2)
    config = Config(lake=str(tmp_path / "lake"))
    files = sorted((tmp_path / "log").glob("requests-*.jsonl.gz"))
    done, _ = of_files(files, Lake(config.lake), config, Keys(b"s" * 16))
    assert done.suggested == ("model_revision", "system_prompt")
    assert done.schemes["suggested"].wrong == 0
    assert done.schemes["contract"].wrong == 0
    assert done.schemes["question_only"].wrong_rate > 0.2
    assert {done.verdicts[n] for n in ("session_id", "hour", "extra.user")} == {"not_needed"}
