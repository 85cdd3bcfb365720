from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.errors import GateFailed, TargetUnavailable
from warmup_lib.stage import StageReport

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_home")]

TEXTS = ["where is my card", "我的卡在哪里", "Où est ma carte ?", "card\nlost", "a" * 201, ""]


def test_ids_counts_and_paths_are_kept() -> None:
    from warmup_lib.airflow.report import trimmed

    facts = {
        "plan_id": "2026-03-14-nightly-5f6a7b8c9d",
        "receipts": "/lake/receipts/plan_id=2026-03-14-nightly-5f6a7b8c9d",
        "items": {"responses": 3},
        "completion": {"responses": {"cache": {"planned": 3, "completion": 1.0}}},
        "days": ["2026-03-14"],
        "forced": False,
        "since": None,
    }
    assert trimmed(facts) == facts


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_dropped_wherever_it_is(text: str) -> None:
    from warmup_lib.airflow.report import trimmed

    facts: dict[str, Any] = {
        "sample": text,
        "many": [text, text],
        "deep": {"label": text, "n": 1, text: 2},
        "rows": [{"text": text}],
        "deeper": {"a": {"b": {"c": {"d": text}}}},
    }
    assert trimmed(facts) == {"many": 2, "deep": {"n": 1}, "rows": 1, "deeper": {"a": {"b": {}}}}


@given(
    st.recursive(
        st.text() | st.integers() | st.none() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    )
)
def test_no_string_with_a_space_or_beyond_ascii_ever_leaves(value: Any) -> None:
    from warmup_lib.airflow.report import trimmed

    left = json.dumps(trimmed({"x": value}), ensure_ascii=False, separators=(",", ":"))
    assert left.isascii()
    assert not any(c.isspace() for c in left)


def test_a_report_is_logged_with_its_notes(caplog: pytest.LogCaptureFixture) -> None:
    from warmup_lib.airflow.report import told

    report = StageReport("plan", 7, 5, 1.23456, ("two layers were left out",), {"plan_id": "p-1"})
    with caplog.at_level(logging.INFO):
        facts = told(report)
    assert facts == {
        "stage": "plan",
        "rows_in": 7,
        "rows_out": 5,
        "seconds": 1.235,
        "plan_id": "p-1",
    }
    assert "plan: two layers were left out" in caplog.messages


def test_progress_is_said_at_the_start_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    from warmup_lib.airflow.report import LogProgress

    progress = LogProgress()
    with caplog.at_level(logging.INFO):
        for done in range(1, 1001):
            progress("texts", done, 1000)
        progress("rows", 5, None)
    assert caplog.messages == ["texts: 1 of 1000", "texts: 1000 of 1000", "rows: 5 of ?"]


def test_a_target_that_was_down_is_an_error_to_retry() -> None:
    from warmup_lib.airflow.report import check_targets

    check_targets({"unavailable": []})
    with pytest.raises(TargetUnavailable, match=r"target 'cache' is not available: refused"):
        check_targets({"unavailable": [{"target": "cache", "reason": "refused"}]})
    unready = {"target": "gpu", "layer": "weights", "reason": "98 of 100 steps worked"}
    with pytest.raises(TargetUnavailable, match="target 'gpu' is not available: 98 of 100"):
        check_targets({"unavailable": [], "not_ready": [unready]})


def test_a_failed_gate_is_an_error_with_its_figures() -> None:
    from warmup_lib.airflow.report import check_gates

    gates = {
        "warmup_completion": {"passed": True, "value": 1.0, "threshold": 0.995},
        "cache_hit_ratio": {"passed": False, "value": 0.21, "threshold": 0.3},
    }
    check_gates({"gates": {"warmup_completion": gates["warmup_completion"]}})
    with pytest.raises(GateFailed, match=r"^cache_hit_ratio is 0\.21, its threshold 0\.3$"):
        check_gates({"gates": gates})
