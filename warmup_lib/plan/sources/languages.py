"""Source `languages`: the first sentences of each language's benchmark set, one set a language.

The sets are the user's. What a log holds of a language is proposed by `queries` and `intents`
already; a set is for what it does not hold yet, such as a language that is about to be launched.
"""

from __future__ import annotations

import numpy as np

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source, first_of_each


class Languages(Source):
    """A few sentences of each set."""

    name = "languages"
    layers = ("embeddings", "responses", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the first sentences of each set that is configured."""
        settings = config.plan.sources.languages
        rows = material.of_list(self.name)
        parts = material.listed["part"].take(rows).to_pylist()
        first = first_of_each(parts, settings.sentences)
        return material.named(
            np.array([rows[n] for n in first if parts[n] in settings.sets], np.int64)
        )
