"""The command line: `python -m bench.kv_length reserved`, then `... paged`.

Each part starts a vLLM of its own, takes a few minutes and rewrites its share of the report
bench/reports/kv-length.md; what was measured is kept beside it as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.encoder import machine
from bench.kv_length.log import compose
from bench.kv_length.measure import BUDGET, ROOM, paged, reserved, serve
from bench.kv_length.report import render

REPORT = Path(__file__).parents[1] / "reports" / "kv-length.md"
MEASURED = REPORT.with_suffix(".json")


def main(part: str) -> None:
    """Measure one part and write the report with what is known of the other."""
    items, day, asks = compose()
    if part == "reserved":
        measured = serve(lambda url: reserved(url, items, day, asks), gib=4)
    else:
        measured = serve(lambda url: paged(url, items, asks), gib=1, blocks=BUDGET + ROOM)
    stamp = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    parts = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    parts[part] = measured | stamp
    MEASURED.write_text(json.dumps(parts) + "\n", encoding="utf-8")
    REPORT.write_text(render(parts), encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    if sys.argv[1:] not in (["reserved"], ["paged"]):
        sys.exit("usage: python -m bench.kv_length reserved|paged")
    main(sys.argv[1])
