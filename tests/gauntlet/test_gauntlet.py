"""The gauntlet: on a real Redis and two real hosts every cause is told, and every trap found.

Faults of every cause are injected per request, in a drawn order, healthy requests between them.
What was injected is written to a file that the detector never reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gauntlet.confusion import Confusion
from tests.gauntlet.run import Gauntlet
from tests.gauntlet.traps import doctor, found, spoilt_model, statuses
from tests.gauntlet.world import World
from warmup_lib import stack
from warmup_lib.causes import Cause

pytestmark = pytest.mark.host

SEED = 20260316
AT_LEAST = 10
"""Requests with each cause."""

GOOD = 0.95
"""Least precision and recall of each cause."""


@pytest.fixture(scope="module")
def gauntlet(tmp_path_factory: pytest.TempPathFactory, stack_artifacts: Path) -> Iterator[Gauntlet]:
    home = tmp_path_factory.mktemp("gauntlet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMUP_HOME", str(home))
        patch.setenv("WARMUP_SECRET", "the secret of the gauntlet alone")
        try:
            run = Gauntlet(World(home, stack_artifacts, SEED), SEED)
            run.prepare()
            run.run()
            yield run
        finally:
            stack.down(home)


@pytest.fixture(scope="module")
def confusion(gauntlet: Gauntlet) -> Confusion:
    return gauntlet.judge()


def test_every_cause_is_told(confusion: Confusion, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{confusion.table()}")
    for cause in set(Cause) - {Cause.UNKNOWN}:
        assert confusion.requests[cause] >= AT_LEAST, cause
        assert confusion.precision(cause) >= GOOD, cause
        assert confusion.recall(cause) >= GOOD, cause


def test_healthy_requests_have_no_cause(confusion: Confusion) -> None:
    false = {pair: n for pair, n in confusion.pairs.items() if pair[0] == "none" != pair[1]}
    assert not false
    assert confusion.pairs["none", "none"] >= 100


def test_nothing_is_found_in_a_healthy_run_however_odd(gauntlet: Gauntlet) -> None:
    code, told = gauntlet.examined["sound"]
    assert set(statuses(told).values()) == {"ok"}, told["traps"]
    assert code == 0


@pytest.mark.parametrize(
    "trap",
    ["tokenisation", "kv_length", "tenant", "bypass", "key_dimensions", "out_of_step"],
)
def test_a_trap_that_is_set_is_found_and_no_other(gauntlet: Gauntlet, trap: str) -> None:
    code, told = gauntlet.examined[trap]
    assert found(told) == [trap], told["traps"]
    assert told["traps"][trap]["remedy"]
    assert code == 1


def test_shards_of_another_shape_are_found(gauntlet: Gauntlet, tmp_path: Path) -> None:
    world = gauntlet.world
    model = spoilt_model(world.model, tmp_path / "model")
    code, told = doctor(world, "--model-dir", str(model))
    assert found(told) == ["weight_shards"]
    assert "transposed" in told["traps"]["weight_shards"]["evidence"]
    assert code == 1
