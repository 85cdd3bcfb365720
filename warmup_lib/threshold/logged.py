"""Pairs from the lake's history: two phrasings under one context, and whether one answer did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.keys import canonical_text
from warmup_lib.lake import Lake
from warmup_lib.threshold.bounds import hits_needed, upper_limit
from warmup_lib.threshold.pairs import Found, Question, nearest_pairs

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("tenant", "context_digest", "text_digest", "text", "response", "unwarmable")


@dataclass
class _Told:
    """What some days tell of one prompt: its text, and the answers it was given."""

    text: str = ""
    answers: set[str] = field(default_factory=set)
    days: int = 0


def logged_pairs(
    lake: Lake, days: Iterable[str], vectors: LakeVectors, bound: float, confidence: float
) -> Found:
    """Return the pairs of the prompts of some days.

    Two prompts share an answer where one and the same canonical answer was given to both. That can
    be told only where answers don't vary by themselves: a tenant whose repeated prompts get another
    answer on another day in more than `bound` of the cases, or too rarely come again to show
    that they don't, is left out with the reason.

    Args:
        lake: Holds `prompts` and `vectors` of the days.
        days: ISO dates.
        vectors: Vectors under one encoder.
        bound: Largest share of wrong hits.
        confidence: Chance with which it is to be kept.
    """
    told: dict[tuple[str, str, str], _Told] = defaultdict(_Told)
    for _, rows in lake.read_days("prompts", days, _COLUMNS):
        _add(told, rows)
    unusable = _varying(told, bound, confidence)
    questions = [
        Question(tenant, digest, one.text, frozenset(one.answers), context)
        for (tenant, context, digest), one in told.items()
        if tenant not in unusable
    ]
    wanted = sorted({question.digest for question in questions})
    pairs = nearest_pairs(questions, vectors.get(wanted))
    return Found(pairs, texts={q.digest: q.text for q in questions}, unusable=unusable)


def _add(told: dict[tuple[str, str, str], _Told], rows: pa.Table) -> None:
    columns = (rows[name].to_pylist() for name in _COLUMNS)
    for tenant, context, digest, text, answer, unwarmable in zip(*columns, strict=True):
        if answer and digest and text and unwarmable is None:
            one = told[tenant, context or "", digest]
            one.text = text
            one.answers.add(canonical_text(answer))
            one.days += 1


def _varying(
    told: Mapping[tuple[str, str, str], _Told], bound: float, confidence: float
) -> dict[str, str]:
    """Return the tenants whose answers don't tell which questions share one, and why."""
    by_tenant: dict[str, list[_Told]] = defaultdict(list)
    for (tenant, _, _), one in told.items():
        by_tenant[tenant].append(one)
    return {
        tenant: why
        for tenant, prompts in sorted(by_tenant.items())
        if (why := _why_unusable([p for p in prompts if p.days > 1], bound, confidence))
    }


def _why_unusable(repeated: Sequence[_Told], bound: float, confidence: float) -> str:
    varied = sum(len(one.answers) > 1 for one in repeated)
    if upper_limit(varied, len(repeated), confidence) <= bound:
        return ""
    if not varied:
        return (
            f"only {len(repeated):,} of its prompts came again on another day, "
            f"{hits_needed(0, bound, confidence):,} are needed to know whether answers vary"
        )
    return (
        f"{varied:,} of {len(repeated):,} prompts that came again got another answer, so that "
        "answers don't tell which prompts could share one"
    )
