"""Settings of the plan's sources: who proposes what to warm, how much of it, at what weight."""

from __future__ import annotations

from collections import Counter

from pydantic import Field, field_validator

from warmup_lib.config.kinds import Positive, Section


class SourceConfig(Section):
    """One source's switch and weight."""

    enabled: bool = True
    weight: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="times the heat of what it proposes, where a layer has no room for everything",
    )


class QueriesConfig(SourceConfig):
    """What the log asks for, normalised and deduplicated."""

    limit: Positive = Field(1000, description="most queries, the hottest first")


class ClustersConfig(SourceConfig):
    """The prompts that stand for the log's largest groups of like requests."""

    limit: Positive = Field(1000, description="most groups")


class HeadsConfig(SourceConfig):
    """The system prompts and tools that the log's requests begin with."""

    limit: Positive = Field(1000, description="most heads, the hottest first")


class IntentsConfig(SourceConfig):
    """Example prompts of the intents that are asked for the most."""

    limit: Positive = Field(50, description="most intents, of all tenants together")
    examples: Positive = Field(3, description="example prompts of each")


class SystemPromptsConfig(SourceConfig):
    """The system prompts that did best in A/B tests."""

    limit: Positive = Field(3, description="most system prompts, of all tests together")
    requests: Positive = Field(
        100, description="scored requests without which a system prompt is not compared"
    )


class LanguagesConfig(SourceConfig):
    """The first sentences of each language's benchmark set."""

    sets: dict[str, str] = Field(
        default_factory=dict, description="language tag -> file of its set: see docs/sources.md"
    )
    sentences: Positive = Field(20, description="sentences taken of each set, from its beginning")

    @field_validator("sets")
    @classmethod
    def _one_set_a_language(cls, value: dict[str, str]) -> dict[str, str]:
        tags = Counter(tag.replace("_", "-").casefold() for tag in value)
        if double := sorted(tag for tag, times in tags.items() if times > 1):
            raise ValueError(f"more than one set of {', '.join(double)}: a language has one")
        return value


class OutputTemplatesConfig(SourceConfig):
    """Requests whose answers follow the application's output templates."""

    path: str | None = Field(None, description="file of them: see docs/sources.md")
    limit: Positive = Field(100, description="most of them, from the file's beginning")


class PinnedConfig(SourceConfig):
    """Requests that are warmed whatever the log says of them."""

    path: str | None = Field(None, description="file of them: see docs/sources.md")
    limit: Positive = Field(1000, description="most of them, from the file's beginning")


class FewShotConfig(SourceConfig):
    """Samples of intent classifiers, those of the intents that are asked for the most first."""

    classifiers: dict[str, str] = Field(
        default_factory=dict, description="classifier -> file of its samples: see docs/sources.md"
    )
    limit: Positive = Field(500, description="most samples of a classifier")


class SourcesConfig(Section):
    """Who proposes what to warm. What only one source proposes goes when it is switched off."""

    queries: QueriesConfig = QueriesConfig()
    clusters: ClustersConfig = ClustersConfig()
    heads: HeadsConfig = HeadsConfig()
    intents: IntentsConfig = IntentsConfig()
    system_prompts: SystemPromptsConfig = SystemPromptsConfig()
    languages: LanguagesConfig = LanguagesConfig()
    output_templates: OutputTemplatesConfig = OutputTemplatesConfig()
    pinned: PinnedConfig = PinnedConfig()
    few_shot: FewShotConfig = FewShotConfig()
