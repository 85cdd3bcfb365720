"""Which errors Airflow tries again, by class; nothing else decides on retries.

A target that does not answer may answer later, and the receipts let the next try go on where the
last one stopped. Everything else raised on purpose reads the same the second time. An error that
is not ours (a worker that was killed, a full disk) gets the task's ordinary retries.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

RETRIES = 3
RETRY_DELAY = timedelta(minutes=1)
TARGET_DELAY = timedelta(minutes=2)

_FINAL = {
    "InputDataError": "the input can't be used as it is",
    "ConfigError": "a setting is missing or wrong",
    "BudgetExceeded": "the plan does not fit its target",
    "GateFailed": "the finding is the result",
    "Superseded": "a newer plan owns the target",
}

RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            exception="warmup_lib.errors.TargetUnavailable",
            action=RetryAction.RETRY,
            retry_delay=TARGET_DELAY,
            reason="a target does not answer; the next try resumes",
        ),
        *(
            RetryRule(exception=f"warmup_lib.errors.{name}", action=RetryAction.FAIL, reason=reason)
            for name, reason in _FINAL.items()
        ),
    ]
)

DEFAULT_ARGS: dict[str, Any] = {
    "retries": RETRIES,
    "retry_delay": RETRY_DELAY,
    "retry_policy": RETRY_POLICY,
}
"""What every DAG here passes as `default_args`."""
