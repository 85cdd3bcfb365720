"""What was asked before that is almost the same: in another case, spacing or number, or near it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warmup_lib.distil.near import MAX_CHARS, near_pairs
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


def variants(texts: Mapping[Text, str], history: History) -> dict[Text, list[Variant]]:
    """Return the variants of texts in the history of their tenants, the closest first.

    Args:
        texts: Texts by tenant and digest.
        history: The history.
    """
    found: dict[Text, list[Variant]] = defaultdict(list)
    for text, those in history.of_texts(texts).items():
        found[text] += [Variant(CASE, where, once) for where, once in those]
    for text, those in history.same_letters(texts).items():
        found[text] += [Variant(LETTERS, where, once) for where, once in those]
    near = _near(texts, history)
    places = history.of_texts({other for others in near.values() for other in others})
    for text, others in near.items():
        for other in others:
            found[text] += [Variant(NEAR, where, once) for where, once in places[other]]
    return found


def _near(texts: Mapping[Text, str], history: History) -> dict[Text, list[Text]]:
    """Return the near duplicates of texts, whatever they were asked in."""
    by_tenant: dict[str, dict[str, str]] = defaultdict(dict)
    for (tenant, digest), text in texts.items():
        by_tenant[tenant][digest] = embedding_text(text)
    found: dict[Text, list[Text]] = {}
    for tenant, asked in sorted(by_tenant.items()):
        known = {digest: embedding_text(text) for digest, text in history.texts_of(tenant)}
        for digest, others in _pairs(asked, known).items():
            found[tenant, digest] = [(tenant, other) for other in others]
    return found


def _pairs(asked: Mapping[str, str], known: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the known texts near to each asked one; a text differs from itself."""
    groups: dict[str, list[str]] = defaultdict(list)
    usable = {**known, **asked}
    wanted = {signature(text) for text in asked.values()}
    for digest, text in usable.items():
        if text and len(text) <= MAX_CHARS and (sign := signature(text)) in wanted:
            groups[sign].append(digest)
    found: dict[str, list[str]] = defaultdict(list)
    for members in groups.values():
        for left, right in near_pairs([usable[digest] for digest in members]):
            for one, other in ((members[left], members[right]), (members[right], members[left])):
                if one in asked and other in known and one != other:
                    found[one].append(other)
    return found


def in_context(found: Sequence[Variant], context: str) -> list[Variant]:
    """Return the variants that were asked in one context."""
    return [one for one in found if one.where.context == context]
