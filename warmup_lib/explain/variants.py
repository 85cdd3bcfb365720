"""What was asked before that is almost the same: in another case, spacing or number, or near it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warmup_lib.distil.near import MAX_CHARS, Near
from warmup_lib.explain.history import History, Once, Text, Where
from warmup_lib.guard import signature
from warmup_lib.keys import embedding_text

CASE, LETTERS, NEAR = "case", "letters", "near"


class Variant(NamedTuple):
    """Something almost the same that was asked before.

    Attributes:
        how: `case`: but for letter case; `letters`: but for case, digits, white space and
            punctuation; `near`: a near duplicate.
        where: The context and head it was asked in.
        once: What it was.
    """

    how: str
    where: Where
    once: Once


class Variants:
    """Finds variants; what was found once, and the texts of the history, are kept.

    Memory: the history's texts of the tenants asked about, and 128 hashes of each that is
    compared.

    Args:
        history: The history.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._found: dict[Text, list[Variant]] = {}
        self._signed: dict[str, dict[str, list[tuple[str, str]]]] = {}
        self._near: dict[Text, Near] = {}

    def of(self, texts: Mapping[Text, str]) -> Mapping[Text, Sequence[Variant]]:
        """Return the variants of texts in the history of their tenants, the closest first.

        Args:
            texts: Texts by tenant and digest.
        """
        new = {text: said for text, said in texts.items() if text not in self._found}
        if new:
            self._found |= self._search(new)
        return {text: self._found[text] for text in texts}

    def _search(self, texts: Mapping[Text, str]) -> dict[Text, list[Variant]]:
        found: dict[Text, list[Variant]] = {text: [] for text in texts}
        for text, those in self._history.of_texts(texts).items():
            found[text] += [Variant(CASE, where, once) for where, once in those]
        for text, those in self._history.same_letters(texts).items():
            found[text] += [Variant(LETTERS, where, once) for where, once in those]
        near = self._near_texts(texts)
        places = self._history.of_texts({other for others in near.values() for other in others})
        for text, others in near.items():
            for other in others:
                found[text] += [Variant(NEAR, where, once) for where, once in places[other]]
        return found

    def _near_texts(self, texts: Mapping[Text, str]) -> dict[Text, list[Text]]:
        """Return the near duplicates of texts, whatever they were asked in."""
        groups: dict[Text, list[tuple[str, str]]] = defaultdict(list)
        for (tenant, digest), text in texts.items():
            folded = embedding_text(text)
            if folded and len(folded) <= MAX_CHARS:
                groups[tenant, signature(folded)].append((digest, folded))
        found: dict[Text, list[Text]] = {}
        for (tenant, signed), asked in sorted(groups.items()):
            known = self._of_tenant(tenant).get(signed, [])
            if not known:
                continue
            near = self._index(tenant, signed, known).to([text for _, text in asked])
            for (digest, _), places in zip(asked, near, strict=True):
                others = [known[n][0] for n in places]
                found[tenant, digest] = [(tenant, other) for other in others if other != digest]
        return found

    def _index(self, tenant: str, signed: str, known: Sequence[tuple[str, str]]) -> Near:
        if (tenant, signed) not in self._near:
            self._near[tenant, signed] = Near([text for _, text in known])
        return self._near[tenant, signed]

    def _of_tenant(self, tenant: str) -> dict[str, list[tuple[str, str]]]:
        """Return a tenant's texts by their signature."""
        if tenant not in self._signed:
            signed: dict[str, list[tuple[str, str]]] = defaultdict(list)
            for digest, text in self._history.texts_of(tenant):
                folded = embedding_text(text)
                if folded and len(folded) <= MAX_CHARS:
                    signed[signature(folded)].append((digest, folded))
            self._signed[tenant] = signed
        return self._signed[tenant]


def in_context(found: Sequence[Variant], context: str) -> list[Variant]:
    """Return the variants that were asked in one context."""
    return [one for one in found if one.where.context == context]
