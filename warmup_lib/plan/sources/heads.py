"""Source `heads`: the system prompts and tools that the log's requests begin with, by heat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warmup_lib.config import Config
from warmup_lib.plan.points import ints
from warmup_lib.plan.sources.base import Material, Proposal, Source


class Heads(Source):
    """Every head of the log."""

    name = "heads"
    layers = ("embeddings", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:  # noqa: ARG002
        """Propose every head with a request."""
        return replace(material.nothing(), heads=np.asarray(ints(material.heads["requests"]) > 0))
