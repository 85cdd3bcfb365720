"""The data team's SQL reports: finds them, runs one over a lake, and runs its checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake

if TYPE_CHECKING:
    import duckdb

_CHECK = re.compile(r"^#(fail|warn)[ \t]+(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Report:
    """One folder of sql/: a query with its metadata, columns and checks."""

    name: str
    folder: Path

    @property
    def query(self) -> str:
        """The query; `$day` is its one parameter."""
        return (self.folder / "query.sql").read_text(encoding="utf-8")

    @property
    def metadata(self) -> dict[str, Any]:
        """Friendly name, what a row is, owners, labels, and the query of the default day."""
        found: dict[str, Any] = yaml.safe_load((self.folder / "metadata.yaml").read_text())
        return found

    @property
    def columns(self) -> list[dict[str, str]]:
        """Name, type, description and unit of each column, in order."""
        found: list[dict[str, str]] = yaml.safe_load((self.folder / "schema.yaml").read_text())
        return found

    @property
    def checks(self) -> list[tuple[str, str, str]]:
        """(severity, name, SQL) of each check; the SQL counts the rows at fault."""
        text = (self.folder / "checks.sql").read_text(encoding="utf-8")
        found = list(_CHECK.finditer(text))
        ends = [m.start() for m in found[1:]] + [len(text)]
        return [
            (m[1], m[2].strip(), text[m.end() : end].strip().rstrip(";"))
            for m, end in zip(found, ends, strict=True)
        ]


@dataclass(frozen=True)
class Result:
    """A report's rows for one day, and the checks that did not hold."""

    report: str
    day: str | None
    columns: list[str]
    rows: list[tuple[Any, ...]]
    failed: list[str]
    warned: list[str]
    newest: str | None
    """The newest day that has rows."""


def find_reports() -> dict[str, Report]:
    """Return the newest version of every report by its name without the version."""
    here = Path(__file__).parent
    root = next(p for p in (here / "_sql", here.parent / "sql") if p.is_dir())
    found: dict[str, Report] = {}
    for folder in sorted(root.iterdir(), key=lambda p: (len(p.name), p.name)):
        name, _, version = folder.name.rpartition("_v")
        if version.isdigit():
            found[name] = Report(name, folder)
    return dict(sorted(found.items()))


def run_report(lake: Lake, name: str, day: str | None = None) -> Result:
    """Run a report for a day, by default the newest that has rows for it.

    Raises:
        InputDataError: There is no such report.
    """
    reports = find_reports()
    report = reports.get(name)
    if report is None:
        raise InputDataError(f"no report '{name}'; there are {', '.join(reports)}")
    with lake.sql() as connection:
        return execute(connection, report, day)


def execute(connection: duckdb.DuckDBPyConnection, report: Report, day: str | None) -> Result:
    """Run a report's query and checks on a connection that has the lake's views."""
    row = connection.execute(report.metadata["default_day"]).fetchone()
    newest = str(row[0]) if row and row[0] is not None else None
    day = day or newest
    connection.execute(f"CREATE OR REPLACE TEMP TABLE report AS {report.query}", {"day": day})
    columns = [d[0] for d in connection.execute("DESCRIBE report").fetchall()]
    rows = connection.execute("FROM report").fetchall()
    broken: dict[str, list[str]] = {"fail": [], "warn": []}
    for severity, check, sql in report.checks:
        count = connection.execute(sql).fetchone()
        if count and count[0]:
            broken[severity].append(f"{check}: {count[0]}")
    return Result(report.name, day, columns, rows, broken["fail"], broken["warn"], newest)
