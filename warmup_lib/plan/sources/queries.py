"""Source `queries`: what the log asks for, normalised and deduplicated, the first by heat.

Normalised is what the log's texts are by their identity. All of the log is proposed here, and the
limit is kept where the layer chooses: what is left out has its reason there.
"""

from __future__ import annotations

from dataclasses import replace

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source


class Queries(Source):
    """Every query of the log, for its vector."""

    name = "queries"
    layers = ("embeddings",)

    def propose(self, material: Material, config: Config) -> Proposal:  # noqa: ARG002
        """Propose every prompt with a request."""
        return replace(material.nothing(), prompts=material.asked())
