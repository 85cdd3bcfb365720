"""Every command in the documentation exists and runs, in the order in which a reader meets it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samples.generate import generate
from samples.shipped import Shipped

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    "docker": "tests/deploy validates the configuration; no engine runs here",
    "psql": "a client of the reader's own database",
    "export": "a setting of the shell",
    "cp": "followed by docker compose",
}
"""First words that are not run here, each with the reason."""

OWN_TESTS = {"stack": "tests/stack", "demo": "tests/test_demo.py"}
"""Commands that take minutes or stop what other tests share, and where they are run."""


def commands(page: Path) -> list[str]:
    found = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        joined = re.sub(r"\\\n\s*", "", block)
        for line in joined.splitlines():
            bare = line.removeprefix("$ ").split("  #")[0].strip()
            if bare and not bare.startswith("#"):
                found.append(bare)
    return found


def documented() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for command in commands(page):
            yield page.name, command


def words(command: str) -> list[str]:
    return shlex.split(command.replace(".venv/bin/warmup", "warmup"), comments=True)


def test_every_documented_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page, command in documented():
        parts = command.split()
        if parts[0] == "make":
            assert re.search(rf"^{parts[1]}:", makefile, re.MULTILINE), (page, command)


def test_nothing_is_documented_that_no_test_knows() -> None:
    known = {"make", "warmup", ".venv/bin/warmup", "git", "cd", *ELSEWHERE}
    unknown = [(page, c) for page, c in documented() if not _starts_known(c, known)]
    assert not unknown


def _starts_known(command: str, known: set[str]) -> bool:
    first = command.split()[0]
    return first in known or not re.match(r"[a-z./]", first) or " | " in command


@pytest.mark.host
def test_documented_commands_run(tmp_path: Path, stack_host: object, stack_home: Path) -> None:
    """Run each page's commands in a folder with logs of the names that the pages use."""
    assert stack_host
    generate(tmp_path / "logs", Shipped(), scale=0.05)
    for day in ("2026-03-16", "2026-03-17"):
        name = f"requests-{day}.jsonl.gz"
        (tmp_path / name).write_bytes((tmp_path / "logs" / name).read_bytes())
    ran = []
    for page in (ROOT / "README.md", ROOT / "docs" / "operate.md"):
        for command in commands(page):
            if words(command)[0] != "warmup" or words(command)[1] in OWN_TESTS:
                continue
            done = subprocess.run(
                [sys.executable, "-m", "warmup_lib.cli", *words(command)[1:]],
                cwd=tmp_path,
                env=os.environ | {"WARMUP_HOME": str(stack_home)},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, (page.name, command, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr
            ran.append(command)
    assert len(ran) >= 6
