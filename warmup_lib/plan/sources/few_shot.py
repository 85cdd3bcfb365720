"""Source `few_shot`: the samples of intent classifiers, those of the hottest intents first.

A classifier looks up the samples nearest to a question by their vectors, so these are warmed, and
the head where a sample's row has one. Nobody asks a sample: no answer is stored for it.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source, first_of_each


class FewShot(Source):
    """The first samples of each classifier, by what the log asks for of their intents."""

    name = "few_shot"
    layers = ("embeddings", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the samples; those of one intent in the order of their file."""
        settings = config.plan.sources.few_shot
        rows = material.of_list(self.name)
        samples = material.listed.select(["part", "tenant", "intent"]).take(rows).to_pylist()
        heat = _heat(material)
        order = sorted(
            (n for n, sample in enumerate(samples) if sample["part"] in settings.classifiers),
            key=lambda n: (-heat.get((samples[n]["tenant"], samples[n]["intent"]), 0), n),
        )
        first = first_of_each([samples[n]["part"] for n in order], settings.limit)
        return material.named(np.array([rows[order[n]] for n in first], np.int64))


def _heat(material: Material) -> dict[tuple[str, str], int]:
    """Return what is asked for of each tenant's intents, in millionths of a request a day."""
    named = material.prompts.filter(pc.is_valid(material.prompts["intent"]))
    sums = named.group_by(["tenant", "intent"]).aggregate([("heat_micro", "sum")])
    return {(row["tenant"], row["intent"]): row["heat_micro_sum"] for row in sums.to_pylist()}
