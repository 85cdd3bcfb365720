"""Source `queries`: what the log asks for, normalised and deduplicated, the hottest first.

Normalised is what the log's texts are by their identity. Of the answers the first are those that
serve the most requests together, so that one stands for all its phrasings (maximum coverage); of
texts and heads, those that are asked for the most. All of the log is proposed here, and the limit
is kept where the layer chooses: what is left out has its reason there.
"""

from __future__ import annotations

import numpy as np

from warmup_lib.config import Config
from warmup_lib.plan.points import ints
from warmup_lib.plan.sources.base import Material, Proposal, Source


class Queries(Source):
    """All that the log asks for."""

    name = "queries"
    layers = ("embeddings", "responses", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:  # noqa: ARG002
        """Propose every prompt and head with a request."""
        asked, used = (ints(table["requests"]) for table in (material.prompts, material.heads))
        return Proposal(np.asarray(asked > 0), np.asarray(used > 0))
