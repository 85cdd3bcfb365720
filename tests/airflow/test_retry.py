from __future__ import annotations

from datetime import timedelta

import pytest

from warmup_lib import errors

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_home")]


def all_errors() -> list[type[errors.WarmupError]]:
    found, queue = [], [errors.WarmupError]
    while queue:
        found.append(queue.pop())
        queue += found[-1].__subclasses__()
    return [e for e in found if e.__module__ == "warmup_lib.errors" and e is not errors.WarmupError]


def test_each_error_class_has_its_action() -> None:
    from airflow.sdk import ExceptionRetryPolicy

    from warmup_lib.airflow.retry import RETRY_POLICY

    policy = ExceptionRetryPolicy.deserialize(RETRY_POLICY.serialize())
    action = {}
    for kind in all_errors():
        parts = ("cache", "refused") if issubclass(kind, errors.TargetUnavailable) else ("x",)
        decision = policy.evaluate(kind(*parts), try_number=1, max_tries=3)
        action[kind.__name__] = (decision.action.value, decision.retry_delay)
    later = ("retry", timedelta(minutes=2))
    assert action == {
        "InputDataError": ("fail", None),
        "ConfigError": ("fail", None),
        "BudgetExceeded": ("fail", None),
        "GateFailed": ("fail", None),
        "Superseded": ("fail", None),
        "TargetUnavailable": later,
        "StoreUnavailable": later,
        "HostUnavailable": later,
    }


def test_what_is_not_ours_gets_the_ordinary_retries() -> None:
    from warmup_lib.airflow.retry import RETRY_POLICY

    decision = RETRY_POLICY.evaluate(MemoryError(), try_number=1, max_tries=3)
    assert decision.action.value == "default"
