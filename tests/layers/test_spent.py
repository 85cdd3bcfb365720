"""What warming took is kept beside the receipts, and a layer that took nothing keeps its old."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warmup_lib.lake import Lake
from warmup_lib.layers.spent import record, recorded
from warmup_lib.tables import RECEIPTS


def cost(items: int, seconds: float) -> dict[str, Any]:
    return {"items": items, "seconds": seconds, "bytes": 100 * items, "tokens": 0}


def test_a_resumed_apply_adds_to_what_is_known(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert recorded(lake, "p") == {}
    lake.replace("receipts", {"plan_id": "p"}, RECEIPTS.empty(), {"other": 1})
    record(lake, "p", {"responses": {"cache": cost(10, 2.0)}, "prefixes": {"host": cost(0, 0.1)}})
    assert recorded(lake, "p") == {"responses": {"cache": cost(10, 2.0)}}
    record(lake, "p", {"responses": {"cache": cost(0, 0.0)}, "prefixes": {"host": cost(3, 0.5)}})
    assert recorded(lake, "p") == {
        "responses": {"cache": cost(10, 2.0)},
        "prefixes": {"host": cost(3, 0.5)},
    }
    manifest = lake.manifest("receipts", {"plan_id": "p"})
    assert manifest is not None
    assert manifest.meta["other"] == 1
