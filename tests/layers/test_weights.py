"""A model is warm when its folder is sound and every generation worked on every rank."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.layers.building import DictVectors, context, demand, items, lookup, new_keys
from tests.preflight.building import healthy, write_tensors
from tests.targets.tiny_host import MODEL, TinyHost
from warmup_lib.config import Config
from warmup_lib.errors import HostUnavailable
from warmup_lib.layers.base import SHARED, Context, Outcome, PlanItem, Proof
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.weights import Weights
from warmup_lib.plan.lengths import SCHEMA
from warmup_lib.stack import StackState
from warmup_lib.targets.host import ModelHost

WEIGHTS = Weights()
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def config(steps: int = 8) -> Config:
    return Config.model_validate({"layers": {"weights": {"steps": steps}}})


def asked(*lengths: tuple[str, str | None, int, int]) -> Demand:
    names = ("model", "model_revision", "tokens", "heat_micro")
    rows = [dict(zip(names, one, strict=True)) | {"requests": 1} for one in lengths]
    return replace(demand(), lengths=pa.Table.from_pylist(rows, SCHEMA))


def item(steps: int = 8, *tokens: int, revision: str | None = None, model: str = MODEL) -> PlanItem:
    of = asked(*[(model, revision, length, 10) for length in tokens or (40,)])
    (made,) = items(WEIGHTS, of, config(steps))
    return made


def run_context(**more: Any) -> Context:
    return context(new_keys(), DictVectors(), **more)


@pytest.fixture
def warm(tiny: TinyHost, with_host: Callable[..., Any]) -> Callable[..., Outcome]:
    """Warm one item, on a host that begins to fail once its abilities are known."""

    def warmed(one: PlanItem, failing: dict[int, int] | None = None) -> Outcome:
        async def work(host: ModelHost) -> Any:
            await host.capabilities()
            tiny.requests.clear()
            tiny.headers.clear()
            tiny.failing = failing or {}
            return await WEIGHTS.warm([one], host, run_context())

        (outcome,) = with_host(tiny.url, work)
        assert isinstance(outcome, Outcome)
        return outcome

    return warmed


@pytest.fixture
def prove(tiny: TinyHost, with_host: Callable[..., Any]) -> Callable[[PlanItem], Proof]:
    def proven(one: PlanItem) -> Proof:
        async def work(host: ModelHost) -> Any:
            await host.capabilities()
            return await WEIGHTS.prove([one], host, run_context())

        (proof,) = with_host(tiny.url, work)
        assert isinstance(proof, Proof)
        return proof

    return proven


# -- candidates ----------------------------------------------------------------------------------


def test_one_item_a_model_and_revision_with_its_heat_and_its_steps() -> None:
    of = asked(("b", None, 900, 20), ("b", None, 100, 30), ("a", "r1", 50, 5), ("a", "r2", 60, 7))
    found = {(i.model, i.model_revision): i for i in items(WEIGHTS, of, config(5))}
    assert set(found) == {("b", None), ("a", "r1"), ("a", "r2")}
    assert len({i.item_id for i in found.values()}) == 3
    both = found["b", None]
    assert (both.tenant, both.heat_micro, both.ttl_s) == (SHARED, 50, 86_400)
    assert json.loads(both.params or "") == {
        "buckets": [{"tokens": 100, "steps": 3}, {"tokens": 900, "steps": 2}]
    }
    again = {(i.model, i.model_revision): i for i in items(WEIGHTS, of, config(5))}
    assert again == found


def test_without_known_lengths_there_is_nothing_to_warm() -> None:
    assert items(WEIGHTS, demand(), config()) == []
    assert WEIGHTS.refused(demand(), config()).num_rows == 0


# -- steps that work -----------------------------------------------------------------------------


def test_every_length_is_stepped_through_and_no_prompt_is_found_in_the_cache(
    tiny: TinyHost, warm: Callable[..., Outcome]
) -> None:
    outcome = warm(item(6, 20, 40, 80))
    assert (outcome.status, outcome.issued, outcome.effective) == ("warmed", 6, [6])
    assert outcome.error is None
    assert outcome.ms > 0
    lengths = [len(sent["messages"][0]["content"].split()) for sent in tiny.requests]
    assert lengths == sorted(lengths)
    # The template is one token, and of the 13 that a first word and its end are taken for, this
    # tokenizer makes one.
    assert Counter(length + 13 for length in lengths) == {20: 2, 40: 2, 80: 2}
    assert len({sent["cache_salt"] for sent in tiny.requests}) == 6
    assert {sent["max_tokens"] for sent in tiny.requests} == {2}
    assert all(sent["priority"] > 0 for sent in tiny.requests)
    assert {sent["x-warmup"] for sent in tiny.headers} == {"plan-test"}
    assert all(sent["X-Request-Id"].startswith("warmup-weights-") for sent in tiny.headers)
    assert not any("X-data-parallel-rank" in sent for sent in tiny.headers)


def test_a_host_without_salts_gets_prompts_that_differ_from_their_first_word(
    tiny: TinyHost, warm: Callable[..., Outcome]
) -> None:
    tiny.knows -= {"salt"}
    assert warm(item(4, 40)).effective == [4]
    assert not any("cache_salt" in sent for sent in tiny.requests)
    first = {sent["messages"][0]["content"].split()[0] for sent in tiny.requests}
    assert len(first) == 4


def test_a_prompt_is_no_longer_than_the_model_takes(
    tiny: TinyHost, warm: Callable[..., Outcome]
) -> None:
    tiny.context = 200
    assert warm(item(2, 40, 900)).effective == [2]
    longest = max(len(sent["messages"][0]["content"].split()) for sent in tiny.requests)
    assert 100 < longest <= 200 - 2 - 32


# -- steps that don't ----------------------------------------------------------------------------


def test_two_of_a_hundred_that_fail_are_told_and_the_host_is_not_ready(
    warm: Callable[..., Outcome],
) -> None:
    outcome = warm(item(100, 20), {0: 2})
    assert (outcome.status, outcome.issued, outcome.effective) == ("failed", 100, [98])
    assert outcome.error is not None
    assert outcome.error.startswith("98 of 100 warm-up generations worked on rank 0: not ready")
    assert "error inside the host" in outcome.error


def test_each_rank_gets_every_step_and_the_short_one_is_named(
    tiny: TinyHost, warm: Callable[..., Outcome]
) -> None:
    tiny.engines = 2
    outcome = warm(item(100, 20), {1: 2})
    assert (outcome.status, outcome.issued, outcome.effective) == ("failed", 100, [100, 98])
    assert outcome.error is not None
    assert outcome.error.startswith("98 of 100 warm-up generations worked on rank 1: not ready")
    ranks = Counter(sent["X-data-parallel-rank"] for sent in tiny.headers)
    assert ranks == {"0": 100, "1": 100}
    assert warm(item(100, 20)).effective == [100, 100]


def test_an_answer_without_a_token_does_not_count(
    tiny: TinyHost, warm: Callable[..., Outcome]
) -> None:
    tiny.answer = ""
    assert warm(item(3, 20)).effective == [3]  # the host says that it made tokens
    tiny.raw = json.dumps(
        {
            "choices": [{"message": {"content": ""}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 0},
        }
    ).encode()
    outcome = warm(item(3, 20))
    assert (outcome.status, outcome.effective) == ("failed", [0])
    assert "an answer without a token" in str(outcome.error)


def test_an_overloaded_host_is_short_and_one_that_is_down_is_given_up(
    tiny: TinyHost, warm: Callable[..., Outcome], with_host: Callable[..., Any]
) -> None:
    async def overloaded(host: ModelHost) -> Any:
        await host.capabilities()
        tiny.status["/v1/chat/completions"] = 503
        return await WEIGHTS.warm([item(3, 20)], host, run_context())

    (outcome,) = with_host(tiny.url, overloaded)
    assert (outcome.status, outcome.effective) == ("failed", [0])
    assert "it answers 503" in outcome.error
    tiny.status = {"/health": 503}
    with pytest.raises(HostUnavailable, match="/health answers 503"):
        warm(item(3, 20))


def test_a_host_that_goes_down_between_two_steps_is_given_up(
    tiny: TinyHost, with_host: Callable[..., Any]
) -> None:
    async def work(host: ModelHost) -> Any:
        await host.capabilities()
        warming = asyncio.create_task(WEIGHTS.warm([item(100, 20)], host, run_context()))
        while len(tiny.requests) < 10:
            await asyncio.sleep(0.001)
        tiny.status |= {"/v1/chat/completions": 503, "/health": 503}
        return await warming

    with pytest.raises(HostUnavailable, match="/health answers 503"):
        with_host(tiny.url, work)


def test_a_model_that_the_host_does_not_serve_is_skipped(
    tiny: TinyHost, warm: Callable[..., Outcome], prove: Callable[[PlanItem], Proof]
) -> None:
    outcome = warm(item(model="other"))
    assert (outcome.status, outcome.error) == ("skipped", "the host does not serve its model")
    assert tiny.requests == []
    assert not prove(item(model="other")).resident


def test_a_model_may_be_served_under_another_name(
    tiny: TinyHost, with_host: Callable[..., Any]
) -> None:
    async def work(host: ModelHost) -> Any:
        return await WEIGHTS.warm([item(2, 20, model="gpt-small")], host, run_context())

    (outcome,) = with_host(tiny.url, work, models={"gpt-small": MODEL})
    assert outcome.effective == [2]


# -- the folder ----------------------------------------------------------------------------------


def test_the_folder_of_a_served_model_is_checked_and_tells_its_memory(
    tiny: TinyHost, warm: Callable[..., Outcome], tmp_path: Path
) -> None:
    tensors = healthy(tmp_path)
    tiny.root = str(tmp_path)
    assert warm(item(2, 20)).bytes == 11_936
    tensors["model.norm.weight"] = ("BF16", (8,))
    write_tensors(tmp_path / "model.safetensors", tensors)
    outcome = warm(item(2, 20))
    assert outcome.status == "failed"
    assert "model.norm.weight: 8, expected 16" in str(outcome.error)
    assert tiny.requests == []  # nothing was sent
    tiny.root = "someone/a-model"
    assert warm(item(2, 20)).bytes == 0


@pytest.mark.parametrize(
    ("revision", "status"),
    [
        (None, "warmed"),
        (COMMIT, "warmed"),
        (COMMIT[:10], "warmed"),
        ("v2", "warmed"),
        ("f" * 40, "failed"),
    ],
)
def test_another_commit_than_requests_name_is_no_hit(
    tiny: TinyHost, warm: Callable[..., Outcome], tmp_path: Path, revision: str, status: str
) -> None:
    tiny.root = str(tmp_path / "models--x--y" / "snapshots" / COMMIT)
    assert warm(item(1, 20, revision=revision)).status == status


# -- proof and lookups ---------------------------------------------------------------------------


def test_proof_takes_an_answer_of_every_rank(
    tiny: TinyHost, prove: Callable[[PlanItem], Proof]
) -> None:
    tiny.engines = 2
    proof = prove(item())
    assert proof.resident
    assert proof.evidence == "healthy, served, answered on 2 of 2 ranks"
    tiny.failing = {1: 9}
    proof = prove(item())
    assert not proof.resident
    assert proof.evidence == "rank 1: HTTP 500: error inside the host"
    tiny.status["/health"] = 500
    with pytest.raises(HostUnavailable):
        prove(item())


def test_a_request_finds_its_model(tiny: TinyHost, with_host: Callable[..., Any]) -> None:
    keys = new_keys()
    asked_for = [lookup(keys, "acme", "q", model=MODEL), lookup(keys, "acme", "q", model="other")]

    async def work(host: ModelHost) -> Any:
        return await WEIGHTS.find(asked_for, host, run_context())

    hit, miss = with_host(tiny.url, work)
    assert (hit.hit, hit.item_id) == (True, item().item_id)
    assert (miss.hit, miss.item_id) == (False, None)


@pytest.mark.host
def test_on_a_real_host(stack_host: StackState, with_host: Callable[..., Any]) -> None:
    service = stack_host.hosts[0]
    assert service.model is not None
    one = item(4, 50, 400, model=service.model)

    async def work(host: ModelHost) -> Any:
        (outcome,) = await WEIGHTS.warm([one], host, run_context())
        return outcome, await WEIGHTS.prove([one], host, run_context())

    outcome, (proof,) = with_host(service.url, work)
    assert (outcome.status, outcome.issued, outcome.effective) == ("warmed", 4, [4])
    assert outcome.bytes == 269_030_016
    assert outcome.tokens == pytest.approx(2 * 50 + 2 * 400, rel=0.02)
    assert proof.resident
