"""Every error this package raises on purpose, and what a scheduler should do about each.

    WarmupError
    ├── InputDataError        bad input: fix the data, never retry
    ├── ConfigError           bad settings: fix the file, never retry
    ├── BudgetExceeded        a plan that does not fit: replan, never retry
    ├── GateFailed            warm-up or hit ratio below its gate: a finding, never retry
    ├── Superseded            a newer plan owns the target: stop, never retry
    └── TargetUnavailable     retry with a delay
        ├── StoreUnavailable  a Redis does not answer
        └── HostUnavailable   a model host does not answer

Messages name the place and the fix and never quote a prompt, an answer or a secret.
"""

from __future__ import annotations


class WarmupError(Exception):
    """Base of all errors raised on purpose; the command line prints it without a traceback."""

    exit_code = 2


class InputDataError(WarmupError):
    """The input can't be used as it is. Airflow fails the task at once: a retry reads the same."""


class ConfigError(WarmupError):
    """A setting is missing or wrong. Airflow fails the task at once: a retry reads the same."""


class BudgetExceeded(WarmupError):
    """A plan does not fit the target it was made for. Airflow fails the task at once."""

    exit_code = 1


class GateFailed(WarmupError):
    """What was measured is below its gate. Airflow fails the task: the finding is the result."""

    exit_code = 1


class Superseded(WarmupError):
    """A newer plan has begun on this target; this one stops by itself and is not retried."""

    exit_code = 1


class TargetUnavailable(WarmupError):
    """A target does not answer. Airflow retries with a delay; the receipts allow a resume.

    Args:
        target: The target's configured name.
        reason: What was seen, without content of any request.
    """

    exit_code = 1

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"target '{target}' is not available: {reason}")
        self.target = target
        self.reason = reason


class StoreUnavailable(TargetUnavailable):
    """A Redis does not answer, refuses writes or lacks what the plan needs."""


class HostUnavailable(TargetUnavailable):
    """A model host does not answer or is not ready."""
