"""Of each language's set the first sentences are proposed, and only of sets that are configured."""

from __future__ import annotations

from typing import Any

from tests.plan import building
from tests.plan.sources.material import heads_of, material, prompts_of
from warmup_lib.config import Config
from warmup_lib.plan.sources.languages import Languages


def test_the_first_sentences_of_each_set() -> None:
    texts = ["de-1", "de-2", "de-3", "fr-1", "old-1"]
    listed = [
        {"source": "languages", "part": text[:-2], "text": text, "head_digest": f"h-{text[:2]}"}
        for text in texts
    ]
    listed.append({"source": "pinned", "part": None, "text": "pinned"})
    prompts = [building.prompt(text, text=text) for text in [*texts, "pinned"]]
    made = material(prompts, [building.head(h) for h in ("h-de", "h-fr", "h-ol")], listed)
    sources: dict[str, Any] = {"languages": {"sets": {"de": "x", "fr": "y"}, "sentences": 2}}
    config = Config.model_validate({"plan": {"sources": sources}})
    proposal = Languages().propose(made, config)
    assert prompts_of(proposal, made) == ["de-1", "de-2", "fr-1"]
    assert heads_of(proposal, made) == ["h-de", "h-fr"]
    assert prompts_of(Languages().propose(made, Config()), made) == []
