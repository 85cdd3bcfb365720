"""Studies of the lake's days and of log files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import duckdb

from warmup_lib.config import Config
from warmup_lib.dimensions.reading import Log, read_log
from warmup_lib.dimensions.report import Semantic, semantic
from warmup_lib.dimensions.similar import Similarity, latest
from warmup_lib.dimensions.study import Study
from warmup_lib.errors import InputDataError
from warmup_lib.ingest.reader import read_requests
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, silent


def of_days(
    lake: Lake,
    days: Sequence[str],
    config: Config,
    *,
    without: Collection[str] = (),
    texts: int = 0,
    progress: Progress = silent,
) -> tuple[Study, Semantic | None]:
    """Study days of the lake.

    Args:
        lake: The lake.
        days: ISO dates.
        config: Settings.
        without: Fields that are not studied.
        texts: Latest distinct texts whose similarity is looked at, too; 0: none.
        progress: Told how many texts are encoded.

    Raises:
        InputDataError: There are no requests, or a field of `without` is not in them.
    """
    connection = lake.sql()
    try:
        listed = ", ".join(f"DATE '{day}'" for day in days)
        relation = f"requests WHERE day IN ({listed})"
        return _studied(connection, relation, lake, config, without, texts, progress)
    finally:
        connection.close()


def of_files(
    files: Sequence[Path],
    lake: Lake,
    config: Config,
    keys: Keys,
    *,
    without: Collection[str] = (),
    texts: int = 0,
    progress: Progress = silent,
) -> tuple[Study, Semantic | None]:
    """Study log files, which are not stored; see `of_days`."""
    rows = read_requests(files, "auto", config, keys)
    connection = duckdb.connect()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("read", rows)
        return _studied(connection, "read", lake, config, without, texts, progress)
    finally:
        connection.close()


def _studied(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    lake: Lake,
    config: Config,
    without: Collection[str],
    texts: int,
    progress: Progress,
) -> tuple[Study, Semantic | None]:
    log = read_log(connection, relation, config.timezone, without)
    _check(log, without)
    study = Study(log)
    if not texts:
        return study, None
    stretch = latest(log, texts)
    similar = Similarity(connection, stretch, lake, config, progress)
    return study, semantic(study, stretch, similar.keys(study.suggested))


def _check(log: Log, without: Collection[str]) -> None:
    if not log.requests:
        raise InputDataError("the log holds no requests that are demand")
    if unknown := sorted(set(without) - set(log.left_out)):
        known = ", ".join([*log.values, *log.left_out])
        raise InputDataError(f"no such field: {', '.join(unknown)}; there are {known}")
