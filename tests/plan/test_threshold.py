"""The nightly question on the sample log: wait after a day like the last one, else plan."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.plan.conftest import SECRET, Sample
from warmup_lib.cli import main

Row = dict[str, Any]
THRESHOLD = 0.15
"""Above the default, for in so small a log most is asked once: at its full size a day that comes
again moves 1.2 % of the hits."""


class Site:
    """A lake of its own with the sample's days, and the settings it is planned under."""

    def __init__(self, folder: Path, sample: Sample) -> None:
        self._folder = folder
        self._sample = sample
        shutil.copytree(sample.folder / "lake", folder / "lake")
        self._settings = folder / "warmup.yaml"
        # Too little room for everything: what is chosen depends on what is asked for.
        chosen = {
            "sources": {"queries": {"limit": 100}, "clusters": {"limit": 100}},
            "drift_threshold": THRESHOLD,
        }
        settings = {"lake": (folder / "lake").as_uri(), "plan": chosen}
        self._settings.write_text(yaml.safe_dump(settings), encoding="utf-8")
        self.next = (date.fromisoformat(sample.last) + timedelta(days=1)).isoformat()

    def plan(self, day: str) -> dict[str, Any]:
        return self._run("plan", "--day", day)

    def ask(self, changed: Callable[[Row], Row]) -> None:
        """Take in a next day on which the last day's requests come again, changed."""
        lines = gzip.decompress(self._sample.files[-1].read_bytes()).splitlines()
        path = self._folder / "next.jsonl"
        rows = [changed(_a_day_later(json.loads(line))) for line in lines]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        self._run("ingest", "--format", "jsonl", str(path))

    def _run(self, *arguments: str) -> dict[str, Any]:
        done = CliRunner().invoke(main, [*arguments, "--config", str(self._settings), "--json"])
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _a_day_later(row: Row) -> Row:
    at = datetime.fromisoformat(row["ts"]) + timedelta(days=1)
    return {**row, "request_id": f"{row['request_id']}-again", "ts": at.isoformat()}


@pytest.fixture
def site(tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))
    return Site(tmp_path, sample)


def test_after_a_day_like_the_last_one_the_plan_goes_on(site: Site, sample: Sample) -> None:
    first = site.plan(sample.last)
    assert first["decision"] == "planned"
    site.ask(lambda row: row)

    again = site.plan(site.next)

    assert (again["decision"], again["plan_id"]) == ("wait", first["plan_id"])
    assert 0 < again["drift"] < THRESHOLD
    assert "still catches" in " ".join(again["notes"])


def test_after_a_day_that_is_not_like_it_there_is_a_new_plan(site: Site, sample: Sample) -> None:
    """A release: all are asked as before, of another revision of the model, with other answers."""
    first = site.plan(sample.last)
    site.ask(lambda row: {**row, "model_revision": "after-the-release"})

    again = site.plan(site.next)

    assert again["decision"] == "planned"
    assert again["plan_id"] != first["plan_id"]
    assert again["current"] == first["plan_id"]
    assert again["drift_by_layer"]["responses"] > THRESHOLD
    assert again["drift_by_layer"]["prefixes"] > THRESHOLD
    # The texts are those of the day before: their vectors serve any revision.
    assert again["drift_by_layer"]["embeddings"] < THRESHOLD
