"""What was read before is not stored twice: the same file, retries, and runs that were stopped."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.ingest import store
from warmup_lib.ingest.stage import run
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import silent

from .conftest import AS_OF


def test_the_same_file_adds_nothing_under_any_name(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, lake: Lake
) -> None:
    rows = [canonical(n) for n in range(20)] + [b"broken"]
    ingest(write(tmp_path / "one.jsonl", *rows))
    before = {d: lake.manifest("requests", {"day": d}) for d in lake.days("requests")}
    again = ingest(write(tmp_path / "other.log", *rows), dialect="auto")
    assert (again.facts["rows_read"], again.facts["duplicates"]) == (21, 21)
    assert (again.facts["days"], again.facts["files_known"]) == ([], 1)
    assert again.notes == ("ingested before, nothing added: other.log",)
    assert before == {d: lake.manifest("requests", {"day": d}) for d in lake.days("requests")}


def test_a_file_that_grew_adds_only_its_new_rows(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    ingest(write(tmp_path / "log", *[canonical(n) for n in range(10)]))
    grown = ingest(write(tmp_path / "log", *[canonical(n) for n in range(14)]))
    assert (grown.facts["rows_kept"], grown.facts["duplicates"]) == (4, 10)
    assert len(stored("requests")) == 14


@pytest.mark.parametrize(
    ("shift", "kept"), [(timedelta(days=1), 0), (timedelta(days=-1), 0), (timedelta(days=2), 1)]
)
def test_a_retry_is_known_on_the_neighbouring_days(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, shift: timedelta, kept: int
) -> None:
    at = datetime(2026, 3, 10, tzinfo=UTC)
    ingest(write(tmp_path / "a", canonical(1, ts=at.isoformat())))
    late = ingest(write(tmp_path / "b", canonical(1, ts=(at + shift).isoformat())))
    assert (late.facts["rows_kept"], late.facts["duplicates"]) == (kept, 1 - kept)


def test_an_id_belongs_to_a_tenant_and_to_one_content(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    ingest(write(tmp_path / "a", canonical(1)))
    rows = [canonical(1, tenant="other"), canonical(1, prompt="reused"), canonical(1, locale="de")]
    facts = ingest(write(tmp_path / "b", *rows)).facts
    assert (facts["rows_kept"], facts["duplicates"]) == (1, 1)
    (bad,) = stored("quarantine")
    assert (bad["position"], bad["reason"], bad["field"]) == (2, "id_conflict", "request_id")


def test_a_file_read_in_the_wrong_dialect_can_be_read_again(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    file = write(tmp_path / "a", canonical(1))
    assert ingest(file, dialect="litellm").facts["quarantine"] == {"missing_field": 1}
    assert ingest(file, dialect="jsonl").facts["rows_kept"] == 1
    assert stored("quarantine") == []


class Killed(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("between", [False, True])
def test_a_run_that_is_killed_leaves_no_double_rows(
    tmp_path: Path,
    canonical: Any,
    write: Any,
    ingest: Any,
    stored: Any,
    config: Config,
    keys: Keys,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    between: bool,
) -> None:
    start = datetime(2026, 3, 10, tzinfo=UTC)
    rows: list[Any] = [
        canonical(n, ts=(start + timedelta(hours=n % 90)).isoformat()) for n in range(200)
    ]
    rows += [b"broken", rows[3], rows[150], {**rows[7], "prompt": "reused id"}]
    file = write(tmp_path / "log", *rows)
    monkeypatch.setattr(store, "BUFFERED_BYTES", 60_000)
    monkeypatch.setattr(store, "_QUARANTINE_ROWS", 1)

    class Dying(Lake):
        left = after

        def append(self, *args: Any, **kwargs: Any) -> Any:
            if not self.left:
                raise Killed
            self.left -= 1
            return super().append(*args, **kwargs)

    with pytest.raises(Killed):
        run(Dying(config.lake), [file], "jsonl", config, keys, silent, AS_OF)
    partly = len(stored("requests"))
    assert partly < 200
    if between:  # other rows come in before the rerun, which shifts where batches begin
        other = write(tmp_path / "other", *[{**r, "locale": "de"} for r in rows[100:110]])
        ingest(other)
    facts = ingest(file, as_of=AS_OF + timedelta(hours=1)).facts
    found = stored("requests")
    assert len(found) == 200
    assert set(Counter(r["request_id"] for r in found).values()) == {1}
    assert facts["quarantine"] == {"id_conflict": 1, "invalid_json": 1}
    assert len(stored("quarantine")) == 2
    if not between:
        assert (facts["rows_kept"], facts["duplicates"]) == (200, 2)
        assert len(facts["days"]) == 5


def test_a_completed_run_says_so(
    tmp_path: Path,
    canonical: Any,
    write: Any,
    ingest: Any,
    config: Config,
    keys: Keys,
) -> None:
    file = write(tmp_path / "log", *[canonical(n) for n in range(9)])

    class Dying(Lake):
        def annotate(self, *_: Any) -> Any:
            raise Killed

    with pytest.raises(Killed):
        run(Dying(config.lake), [file], "jsonl", config, keys, silent, AS_OF)
    report = ingest(file)
    assert report.facts["rows_kept"] == 9
    assert report.notes == ("an ingest that was stopped is completed: log",)


def test_the_same_files_give_the_same_bytes(
    tmp_path: Path, canonical: Any, write: Any, keys: Keys
) -> None:
    file = write(tmp_path / "log", *[canonical(n) for n in range(50)])
    names = []
    for place in ("a", "b"):
        config = Config(lake=f"{tmp_path}/{place}")
        run(Lake(config.lake), [file], "jsonl", config, keys, silent, AS_OF)
        manifest = Lake(config.lake).manifest("requests", {"day": "2026-03-14"})
        assert manifest is not None
        names.append([p.name for p in manifest.parts])
    assert names[0] == names[1]
