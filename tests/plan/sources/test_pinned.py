"""What a list pins is proposed in the list's order, requests and heads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plan import building
from tests.plan.sources.material import heads_of, material, prompts_of
from warmup_lib.config import Config
from warmup_lib.plan.sources.base import Source
from warmup_lib.plan.sources.output_templates import OutputTemplates
from warmup_lib.plan.sources.pinned import Pinned


@pytest.mark.parametrize("source", [Pinned(), OutputTemplates()])
def test_the_first_of_the_list(source: Source) -> None:
    listed = [
        {"source": source.name, "text": "b", "head_digest": None},
        {"source": source.name, "text": None, "head_digest": "h"},
        {"source": source.name, "text": "b", "head_digest": "h"},
        {"source": source.name, "text": "c", "head_digest": "i"},
        {"source": "languages", "text": "a", "head_digest": "i"},
    ]
    prompts = [building.prompt(text, text=text) for text in "abc"]
    made = material(prompts, [building.head(digest) for digest in "hi"], listed)

    def proposal(**settings: Any) -> tuple[list[str], list[str]]:
        config = Config.model_validate({"plan": {"sources": {source.name: settings}}})
        found = source.propose(made, config)
        return prompts_of(found, made), heads_of(found, made)

    assert proposal(path="somewhere", limit=3) == (["b"], ["h"])
    assert proposal(path="somewhere") == (["b", "c"], ["h", "i"])
    assert proposal() == ([], [])  # the list is no longer configured
