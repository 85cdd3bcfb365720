"""The sources in the order in which items name them. A new source is one module and one line."""

from __future__ import annotations

from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Source
from warmup_lib.plan.sources.clusters import Clusters
from warmup_lib.plan.sources.few_shot import FewShot
from warmup_lib.plan.sources.heads import Heads
from warmup_lib.plan.sources.intents import Intents
from warmup_lib.plan.sources.languages import Languages
from warmup_lib.plan.sources.output_templates import OutputTemplates
from warmup_lib.plan.sources.pinned import Pinned
from warmup_lib.plan.sources.queries import Queries
from warmup_lib.plan.sources.system_prompts import SystemPrompts

SOURCES: dict[str, Source] = {
    "queries": Queries(),
    "clusters": Clusters(),
    "heads": Heads(),
    "intents": Intents(),
    "system_prompts": SystemPrompts(),
    "languages": Languages(),
    "output_templates": OutputTemplates(),
    "pinned": Pinned(),
    "few_shot": FewShot(),
}


def switched_on(config: Config) -> list[Source]:
    """Return the sources that the settings switch on."""
    return [one for name, one in SOURCES.items() if getattr(config.plan.sources, name).enabled]
