"""The assets other DAGs can wait for, declared once.

Events carry the log day as partition key, so that a DAG that waits for one must be partitioned
too: `schedule=PartitionedAssetTimetable(assets=PLAN)`.
"""

from __future__ import annotations

from airflow.sdk import Asset

PLAN = Asset(name="warmup_plan", uri="warmup://plan", group="warmup")
"""A plan was chosen, or the current one still serves. Event extra: plan id, decision, counts."""

WARMTH = Asset(name="warmup_warmth", uri="warmup://warmth", group="warmup")
"""A plan's items were proven resident at the gate. Event extra: plan id, counts."""
