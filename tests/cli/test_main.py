"""The command line's manners: help, exit codes, one JSON object, errors as sentences."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib.cli import main
from warmup_lib.cli.main import COMMANDS

ROW = {
    "request_id": "r1",
    "ts": "2026-03-04T10:00:00Z",
    "tenant": "acme",
    "model": "m",
    "prompt": "How do I block my card?",
}
LEAVES = [
    *([c] for c in COMMANDS if c != "stack"),
    *(["stack", c] for c in ("up", "down", "status")),
    ["plan", "diff"],
    ["plan", "compare"],
]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WARMUP_SECRET", "s" * 32)


def run(*arguments: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=input)


def facts(result: Result) -> dict[str, Any]:
    lines = result.stdout.strip().splitlines()
    assert len(lines) == 1, result.output
    found: dict[str, Any] = json.loads(lines[0])
    return found


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return (tmp_path / "lake").as_uri()


def log(tmp_path: Path, *rows: dict[str, Any]) -> str:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return str(path)


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_has_help_with_an_example(words: list[str]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"warmup {words[0]}" in result.output
    if words != ["stack"]:
        assert {"--config", "--lake", "--json"} <= set(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan"], "--day is needed"),
        (["plan", "--day", "yesterday"], "is not a day such as"),
        (["plan", "--day", "2026-03-04"], "ingest"),
        (["apply", "--plan", "nope"], "no such plan"),
        (["apply", "--plan", "latest"], "warmup plan --day"),
        (["verify", "--plan", "nope"], "no such plan"),
        (["ingest", "absent.jsonl"], "no such file"),
        (["sql", "no_report"], "top_clusters"),
        (["sql", "--config", "absent.yaml"], "warmup init"),
        (["sql", "quarantine", "--day", "xx"], "is not a day such as"),
        (["sql", "--day", "2026-03-14"], "--day is for a report"),
        (["backtest", "--trace", "t.csv", "--capacity", "9" * 20], "1<=x<=1000000000"),
        (["ingest", "[/red]"], "no such file or folder: [/red]"),
    ],
)
def test_bad_usage_exits_2_with_what_to_do(arguments: list[str], says: str, lake: str) -> None:
    result = run(*arguments, "--lake", lake)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan"], "--day is needed"),
        (["plan", "--day", "yesterday"], "is not a day such as"),
        (["plan", "--day", "0001-01-01"], "no log has a day such as"),
        (["plan", "--day", "9999-12-31"], "no log has a day such as"),
        (["plan", "diff", "a"], "Missing argument 'B'"),
        (["apply"], "Missing option '--plan'"),
        (["nothing"], "No such command 'nothing'"),
        (["stack"], "No such option"),
    ],
)
def test_wrong_usage_is_one_json_object_too(arguments: list[str], says: str) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    assert says in facts(result)["error"]
    assert facts(result)["kind"]


@pytest.mark.parametrize("json_too", [["--json"], []])
def test_a_bug_is_called_one_and_its_message_is_kept_back(
    json_too: list[str], lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise KeyError("text of a prompt")

    monkeypatch.setattr("warmup_lib.pipeline.open_lake", broken)
    result = run("sql", "--lake", lake, *json_too, input="SELECT 1")
    assert result.exit_code == 2
    assert "KeyError: this is a bug; WARMUP_DEBUG=1 shows" in result.stderr
    assert "prompt" not in result.output
    assert (facts(result)["kind"] == "KeyError") if json_too else not result.stdout
    monkeypatch.setenv("WARMUP_DEBUG", "1")
    assert isinstance(run("sql", "--lake", lake).exception, KeyError)


def test_a_day_without_requests_says_what_to_run(tmp_path: Path, lake: str) -> None:
    run("ingest", "--lake", lake, log(tmp_path, ROW))
    result = run("plan", "--day", "2026-03-06", "--lake", lake, "--json")
    assert result.exit_code == 2
    assert "there are 2026-03-04 to 2026-03-04): `warmup ingest`" in facts(result)["error"]


def test_a_file_of_unusable_rows_exits_2_and_is_accounted_for(tmp_path: Path, lake: str) -> None:
    result = run("ingest", "--lake", lake, "--json", log(tmp_path, {"tenant": 1}))
    assert result.exit_code == 2
    assert facts(result)["rows_quarantined"] == 1
    report = run("sql", "quarantine", "--lake", lake, "--json")
    assert facts(report)["rows"][0]["rows_quarantined"] == 1
    other_day = run("sql", "quarantine", "--lake", lake, "--day", "2026-03-04")
    assert "no rows for 2026-03-04: the newest day that has any is 20" in other_day.stderr
    row = log(tmp_path, {"tenant": 1, "model": "m"})
    said = run("ingest", "--lake", lake, "--format=jsonl", row)
    assert "read 1 row in" in said.stdout
    assert "1 quarantined (missing_field 1)" in said.stdout


def test_files_of_no_log_exit_2(tmp_path: Path, lake: str) -> None:
    result = run("ingest", "--lake", lake, log(tmp_path, {"nothing": 1}))
    assert result.exit_code == 2
    assert "skipped, no line is of a known log format: log.jsonl" in result.stdout


def test_sql_prints_wide_rows_line_by_line(lake: str) -> None:
    columns = ", ".join(f"{n} AS column_{n}" for n in range(30))
    shown = run("sql", "--lake", lake, input=f"SELECT {columns}").stdout
    assert "row 1" in shown
    assert re.search(r"│ column_29 +│ +29 │", shown)


def test_ingest_accounts_for_every_row_and_a_second_time_adds_none(
    tmp_path: Path, lake: str
) -> None:
    file = log(tmp_path, ROW, ROW, {**ROW, "request_id": "r2", "ts": "?"})
    first = facts(run("ingest", "--lake", lake, "--json", "--format", "jsonl", file))
    counts = ("rows_read", "rows_kept", "rows_quarantined", "duplicates")
    assert [first[c] for c in counts] == [3, 1, 1, 1]
    assert first["days"] == ["2026-03-04"]
    again = facts(run("ingest", "--lake", lake, "--json", "--format", "jsonl", file))
    assert again["rows_kept"] == 0
    assert again["rows_read"] == sum(again[c] for c in counts[1:])


def test_names_are_printed_as_they_are(tmp_path: Path, lake: str) -> None:
    tenants = ("team [/ops]", "[red]")
    rows = [{**ROW, "tenant": t, "request_id": t} for t in tenants]
    run("ingest", "--lake", lake, "--format", "jsonl", log(tmp_path, *rows))
    shown = run("sql", "--lake", lake, input="SELECT tenant FROM requests").output
    assert all(t in shown for t in tenants)


def test_a_lake_that_is_a_file_or_a_pattern_is_refused(tmp_path: Path) -> None:
    file = log(tmp_path, ROW)
    for wrong in (file, str(tmp_path / "g[1]x"), str(tmp_path / "a*b")):
        result = run("ingest", "--lake", wrong, "--json", file)
        assert result.exit_code == 2, result.output
        assert set(facts(result)) == {"error", "kind"}


def test_another_secret_or_zone_is_refused(
    tmp_path: Path, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ingest", "--lake", lake, "--format", "jsonl", log(tmp_path, ROW))
    zone = tmp_path / "zone.yaml"
    zone.write_text("timezone: Asia/Shanghai\n")
    moved = run("plan", "--day", "2026-03-04", "--lake", lake, "--config", str(zone))
    assert (moved.exit_code, "time zone UTC" in moved.output) == (2, True)
    monkeypatch.setenv("WARMUP_SECRET", "t" * 32)
    result = run("plan", "--day", "2026-03-04", "--lake", lake)
    assert (result.exit_code, "secret id" in result.output) == (2, True)


def test_ingests_at_once_keep_every_row(tmp_path: Path, lake: str) -> None:
    files = []
    for part in range(4):
        rows = [
            {**ROW, "request_id": f"{part}-{n}", "ts": f"2026-03-{1 + n % 28:02}T10:00:00Z"}
            for n in range(112)
        ]
        files.append(tmp_path / f"{part}.jsonl")
        files[-1].write_text("".join(json.dumps(r) + "\n" for r in rows))
    words = [sys.executable, "-m", "warmup_lib.cli", "ingest", "--lake", lake, "--json"]
    running = [subprocess.Popen([*words, str(f)], stdout=subprocess.DEVNULL) for f in files]
    assert [p.wait(timeout=300) for p in running] == [0, 0, 0, 0]
    counted = run("sql", "--lake", lake, "--json", input="SELECT count(*) AS n FROM requests")
    assert facts(counted)["rows"] == [{"n": 448}]


def test_sql_reads_statements_from_stdin(tmp_path: Path, lake: str) -> None:
    run("ingest", "--lake", lake, "--format", "jsonl", log(tmp_path, ROW))
    one = run("sql", "--lake", lake, "--json", input="SELECT tenant FROM requests; SELECT 2 AS n")
    assert facts(one)["rows"] == [{"tenant": "acme"}, {"n": 2}]
    half = run("sql", "--lake", lake, "--json", input="SELECT 1 FROM nowhere; SELECT 2 AS n")
    assert (half.exit_code, facts(half)["rows"]) == (2, [{"n": 2}])
    assert run("sql", "--lake", lake, input="SELEC 1").exit_code == 2
    other = run("sql", "--lake", lake, input=b"SELECT '\xff'")
    assert (other.exit_code, other.stderr) == (2, "error: what stdin gives is no UTF-8\n")
    wrong = run("sql", "--lake", lake, input="SELECT nothing FROM nowhere")
    assert wrong.exit_code == 2
    assert "error:" in wrong.output


def test_sql_prints_strict_json_with_every_column(lake: str) -> None:
    text = "SELECT 'nan'::DOUBLE AS a, 1 AS b, 2 AS b, 3 AS b_2, [MAP {1: 'inf'::DOUBLE}] AS c"
    result = run("sql", "--lake", lake, "--json", input=text)
    assert facts(result)["rows"] == [{"a": None, "b": 1, "b_3": 2, "b_2": 3, "c": [{"1": None}]}]
    assert "NaN" not in result.stdout


def test_sql_is_cut_into_statements_by_its_grammar(lake: str) -> None:
    text = "SELECT ';' AS a; -- one; two\nSELECT 2 AS n;"
    assert facts(run("sql", "--lake", lake, "--json", input=text))["rows"] == [{"a": ";"}, {"n": 2}]


def test_init_writes_settings_that_load_and_says_what_it_reached(tmp_path: Path, lake: str) -> None:
    out = tmp_path / "made" / "warmup.yaml"
    arguments = ["init", "--out", str(out), "--lake", lake, "--redis", "redis://127.0.0.1:1/0"]
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    checks = {c["name"]: c["ok"] for c in facts(result)["checks"]}
    assert checks == {f"lake {lake}": True, "target cache": False}
    assert "# " in out.read_text()
    assert run("sql", "--list", "--config", str(out)).exit_code == 0
    assert run(*arguments).exit_code == 2  # it is there


def test_status_exits_1_while_nothing_runs() -> None:
    result = run("stack", "status", "--json")
    assert result.exit_code == 1
    assert facts(result)["services"] == []


def test_planning_twice_waits_and_one_more_day_embeds_only_new_texts(
    tmp_path: Path, lake: str
) -> None:
    generate(tmp_path / "log", Shipped(), scale=0.02, days=4)
    files = sorted((tmp_path / "log").glob("*.gz"))
    run("ingest", "--lake", lake, "--format", "jsonl", *map(str, files[:3]))
    first = facts(run("plan", "--day", "2026-03-06", "--lake", lake, "--json"))
    assert first["decision"] == "planned"
    plan = tmp_path / "lake" / "plan" / f"plan_id={first['plan_id']}"
    before = {p.name: p.read_bytes() for p in plan.iterdir()}
    again = facts(run("plan", "--day", "2026-03-06", "--lake", lake, "--json"))
    assert again["plan_id"] == first["plan_id"]
    assert {p.name: p.read_bytes() for p in plan.iterdir()} == before

    rows = [json.loads(line) for line in gzip.decompress(files[2].read_bytes()).splitlines()]
    texts = {r["prompt"] for r in rows if not r.get("warmup")}
    known = [r for r in rows if r.get("intent") and not r.get("messages")][:90]
    moved = [
        {**r, "request_id": f"n{i}", "ts": "2026-03-07T09:00:00Z"} for i, r in enumerate(known)
    ]
    fresh = [
        {**moved[i], "request_id": f"f{i}", "prompt": f"Where is branch number {i} in town?"}
        for i in range(10)
    ]
    assert not texts & {r["prompt"] for r in fresh}
    run("ingest", "--lake", lake, "--format", "jsonl", log(tmp_path, *moved, *fresh))
    later = facts(run("plan", "--day", "2026-03-07", "--lake", lake, "--json"))
    embedded = [s["embedded"] for s in later["stages"] if s["stage"] == "embed"]
    assert embedded == [0, 0, 0, 10]
