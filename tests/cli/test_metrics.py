from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from warmup_lib.cli.main import main
from warmup_lib.lake import Lake
from warmup_lib.tables import PLAN


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARMUP_SECRET", "a secret of sixteen bytes")
    return Lake((tmp_path / "lake").as_uri())


def call(lake: Lake, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["metrics", "--lake", lake.uri, *arguments])


def planned(lake: Lake) -> None:
    row = dict.fromkeys(PLAN.schema.names) | {
        "item_id": "i",
        "layer": "responses",
        "tenant": "acme",
    }
    table = pa.Table.from_pylist([row], schema=PLAN.schema)
    lake.replace("plan", {"plan_id": "p"}, table)
    lake.name_latest("p")


def test_the_figures_are_one_json_object(lake: Lake) -> None:
    planned(lake)
    done = call(lake, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["figures"]
    assert {"name": "warmup.plan.info", "value": 1, "attributes": {"warmup.plan": "p"}} in found
    assert done.stdout.count("\n") == 1


def test_once_prints_a_table(lake: Lake) -> None:
    planned(lake)
    done = call(lake, "--once", "--plan", "latest")
    assert done.exit_code == 0, done.output
    assert "warmup.gate=warmup_completion" in done.stdout


@pytest.mark.parametrize("listen", ["9464", "here", "127.0.0.1:", ":9464", "127.0.0.1:99999"])
def test_an_address_without_host_and_port_is_wrong_usage(lake: Lake, listen: str) -> None:
    planned(lake)
    done = call(lake, "--listen", listen)
    assert done.exit_code == 2
    assert "host:port" in done.stderr


def test_without_a_plan_one_is_told_to_make_one(lake: Lake) -> None:
    for arguments in (["--once"], ["--once", "--plan", "nope"]):
        done = call(lake, *arguments)
        assert done.exit_code == 2
        assert "warmup plan" in done.stderr
