"""Runs an apply that kills itself, as `kill -9` does, once a number of receipts is written.

Arguments: settings (JSON), plan id, number of receipts; a layer and a target if only these.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from warmup_lib import pipeline
from warmup_lib.config import Config


def main() -> None:
    settings, plan_id, receipts, *only = sys.argv[1:]

    def progress(_: str, done: int, __: int | None) -> None:
        if done >= int(receipts):
            os.kill(os.getpid(), signal.SIGKILL)

    pipeline.apply(
        Config.model_validate(json.loads(settings)),
        plan_id,
        layers=only[:1] or None,
        targets=only[1:] or None,
        progress=progress,
    )


if __name__ == "__main__":
    main()
