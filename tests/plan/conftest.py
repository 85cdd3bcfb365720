"""The sample log, small, taken in once for the tests that plan on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib import pipeline
from warmup_lib.config import Config

DAYS = 7
SECRET = "a secret of the tests that plan on the sample log"


@dataclass(frozen=True)
class Sample:
    """A lake of all days of a small sample log, and the log.

    Attributes:
        folder: Holds `lake` and the log's files.
        files: Of the log, one a day, oldest first.
        last: Last day that was taken in, ISO date.
    """

    folder: Path
    files: list[Path]
    last: str

    @property
    def lake(self) -> str:
        return (self.folder / "lake").as_uri()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """Days 1 to 7 of the sample log at a twentieth of its size, built up to the plan."""
    folder = tmp_path_factory.mktemp("sample")
    generate(folder / "log", Shipped(), scale=0.05, days=DAYS)
    files = sorted((folder / "log").glob("requests-*.jsonl.gz"))
    last = files[-1].name.removeprefix("requests-")[:10]
    made = Sample(folder, files, last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMUP_SECRET", SECRET)
        config = Config(lake=made.lake)
        pipeline.ingest(config, files, "jsonl")
        pipeline.build_day(config, last)
        yield made
