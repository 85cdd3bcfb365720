from __future__ import annotations

import re
from pathlib import Path

from warmup_lib.ingest.outcome import Reason

DOCS = Path(__file__).parents[2] / "docs" / "requests.md"


def test_every_reason_is_documented_and_no_other() -> None:
    section = DOCS.read_text("utf-8").split("## Quarantine")[1].split("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [r.value for r in Reason]
