"""A Redis of a test's own, which may be stopped, emptied and looked into."""

from __future__ import annotations

from pathlib import Path

import redis

from warmup_lib import stack


class Server:
    """One process at a time, on a new port after each start."""

    def __init__(self, home: Path, artifacts: Path) -> None:
        self.home = home
        self.artifacts = artifacts
        self.url = ""
        self.start()

    def start(self) -> None:
        state = stack.up(
            self.home, model_host=False, progress=lambda _: None, artifacts=self.artifacts
        )
        assert state.redis is not None
        self.url = state.redis.url

    def stop(self) -> None:
        stack.down(self.home)

    def expiries(self) -> dict[str, int]:
        """Return when each item's entry will expire: it changes when one is written again."""
        with redis.Redis.from_url(self.url, protocol=2) as client:
            noted = (b"generation", b"threshold")  # the planner's own notes: no item's
            keys = [k for k in client.scan_iter(count=1000) if not any(n in k for n in noted)]
            pipe = client.pipeline(transaction=False)
            for key in keys:
                pipe.pexpiretime(key)
            return dict(zip([key.decode() for key in keys], pipe.execute(), strict=True))
