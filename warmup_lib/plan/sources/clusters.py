"""Source `clusters`: the prompts that stand for the log's largest groups of like requests.

Two requests are alike where one's answer serves the other: above the serving threshold, in one
context, past the guard. The first are those that serve the most requests together (maximum
coverage), so that one stands for all its phrasings. All of the log is proposed here, and the limit
is kept where the layer chooses.
"""

from __future__ import annotations

from dataclasses import replace

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source


class Clusters(Source):
    """Every prompt of the log, for the answer that it shares with its like."""

    name = "clusters"
    layers = ("responses",)

    def propose(self, material: Material, config: Config) -> Proposal:  # noqa: ARG002
        """Propose every prompt with a request."""
        return replace(material.nothing(), prompts=material.asked())
