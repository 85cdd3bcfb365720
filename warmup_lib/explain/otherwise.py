"""A request that is planned as it is but for one thing: its tenant, adapter, model or template.

Only where nobody of the tenant ever asked in this way before (the same context, or the same head).
Who always asked so has demand of his own, and is no mistake.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from warmup_lib.causes import Cause
from warmup_lib.explain.known import request_of
from warmup_lib.explain.miss import L1, PREFIXES, Miss, Verdict
from warmup_lib.explain.standing import Standing
from warmup_lib.keys import Keys, Request
from warmup_lib.layers.base import PlanItem
from warmup_lib.places import EMBEDDINGS, RESPONSES


class Otherwise:
    """Compares requests with a plan's items.

    Args:
        standing: The plan's items.
        keys: The key builder.
    """

    def __init__(self, standing: Standing, keys: Keys) -> None:
        self._keys = keys
        self._texts = standing.by_text
        self._heads: dict[tuple[str, str, str], list[PlanItem]] = defaultdict(list)
        for (layer, tier, _, _), items in standing.items.items():
            if layer == PREFIXES or tier == L1:
                for item in items:
                    self._heads[layer, item.system_prompt or "", item.tools or ""].append(item)

    def of(self, miss: Miss) -> Verdict | None:
        """Return in what one thing a request differs from a planned one; None: there is none."""
        request = request_of(miss.asked, self._keys)
        if request is None:
            return None
        of_head = miss.layer == PREFIXES or miss.tier == L1
        for item in self._candidates(miss, of_head):
            for cause, told, other in _one_thing(request, item):
                identity = self._keys.identity(other)
                if (identity.head if of_head else identity.response) == item.key_digest:
                    if miss.layer == EMBEDDINGS and not of_head and cause != Cause.KEY_TENANT:
                        continue  # its key holds neither model nor adapter
                    return Verdict(cause, told, item.item_id)
        return None

    def _candidates(self, miss: Miss, of_head: bool) -> Sequence[PlanItem]:
        asked = miss.asked
        if of_head:
            return self._heads.get((miss.layer, asked.system_prompt or "", asked.tools or ""), ())
        if miss.tier is None and miss.layer in (RESPONSES, EMBEDDINGS):
            return self._texts.get(asked.text_digest, ())
        return ()


def _one_thing(request: Request, item: PlanItem) -> Iterable[tuple[Cause, str, Request]]:
    """Yield the request with one thing as the item has it, and what that would show."""
    if request.tenant != item.tenant:
        yield Cause.KEY_TENANT, "planned for another tenant", replace(request, tenant=item.tenant)
    if request.adapter != item.adapter:
        told = f"adapter={request.adapter} planned={item.adapter}"
        yield Cause.KEY_ADAPTER, told, replace(request, adapter=item.adapter)
    if (request.model, request.model_revision) != (item.model, item.model_revision):
        told = f"revision={request.model_revision} planned={item.model_revision}"
        other = replace(request, model=item.model, model_revision=item.model_revision)
        yield Cause.KEY_MODEL_REVISION, told, other
