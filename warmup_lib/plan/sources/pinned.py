"""Source `pinned`: what the user has warmed whatever the log says of it.

Where a layer has no room for everything, these go first.
"""

from __future__ import annotations

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source


class Pinned(Source):
    """The first of the user's list."""

    name = "pinned"
    layers = ("embeddings", "responses", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the list's first requests and heads."""
        settings = config.plan.sources.pinned
        rows = material.of_list(self.name if settings.path else "")
        return material.named(rows[: settings.limit])
