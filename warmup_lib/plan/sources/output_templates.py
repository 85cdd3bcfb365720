"""Source `output_templates`: requests whose answers follow the application's output templates.

No cache holds the form of an output apart from what leads to it: a KV cache holds what is put in,
and an answer's form serves nobody but who asks that question. So the list names requests, and
warmed are their heads, which describe the form, and their whole answers, which follow it. For the
same reason forms are not guessed from logged answers: it would only name hot questions again.
"""

from __future__ import annotations

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Material, Proposal, Source


class OutputTemplates(Source):
    """The first of the user's list."""

    name = "output_templates"
    layers = ("embeddings", "responses", "prefixes")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the list's first requests and heads."""
        settings = config.plan.sources.output_templates
        rows = material.of_list(self.name if settings.path else "")
        return material.named(rows[: settings.limit])
