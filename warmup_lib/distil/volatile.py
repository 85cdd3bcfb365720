"""Heads that are new each time because a moment or an id is written into them.

Such a head can't be warmed: tomorrow it will be another one. It is told from a new version of a
prompt by two things: only a moment or an id differs, and it does so again and again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable

MIN_VARIANTS = 3
"""So many heads of one form in a day, and they are taken as one head with a moment or id in it."""

_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni|july?|juli"
    r"|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|okt(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|dez(?:ember)?|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre"
    r"|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre"
    r"|diciembre)"
)
_WEEKDAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag"
    r"|mittwoch|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves"
    r"|viernes|sábado|domingo|(?:星期|周|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?)"
)
_NTH = r"\d{1,2}(?:st|nd|rd|th|er|\.)?"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\b)?"
_VOLATILE = re.compile(
    "|".join(
        (
            r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
            rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[t ]{_TIME})?(?:z\b|\s?[+-]\d{{2}}:?\d{{2}}\b)?",
            r"\d{1,4}[./]\d{1,2}[./]\d{2,4}",
            r"(?:\d{2,4}年)?\d{1,2}月\d{1,2}[日号號]",
            rf"\b{_MONTH}\.?\s+{_NTH}(?:,?\s+\d{{4}})?\b",
            rf"\b{_NTH}\s+(?:of |de )?{_MONTH}\.?(?:,?\s+(?:de )?\d{{4}})?\b",
            _WEEKDAY,
            _TIME,
            r"\d{1,2}[时時点點]\d{1,2}分?",
            r"\b[a-z]{1,12}[_-](?=[a-z]*\d)[0-9a-z]{8,}\b",
            r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{16,}\b",
            r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
            r"\d{6,}",
        )
    ),
    re.IGNORECASE,
)


def blank(text: str) -> str:
    """Return `text` with dates, times, UUIDs, hexadecimal ids and long digit runs blanked out."""
    return _VOLATILE.sub("\N{WHITE SQUARE}", text)


def volatile(heads: Iterable[tuple[Hashable, str, str, str]]) -> set[str]:
    """Return the digests of heads that differ from others in a moment or an id only.

    Args:
        heads: (group, digest, system prompt, tools) of distinct heads; only heads of one group
            (tenant, model, adapter) are compared.
    """
    forms: dict[tuple[Hashable, str, str], list[str]] = defaultdict(list)
    for group, digest, system_prompt, tools in heads:
        form = (blank(system_prompt), blank(tools))
        if form != (system_prompt, tools):
            forms[group, *form].append(digest)
    return {digest for same in forms.values() if len(same) >= MIN_VARIANTS for digest in same}
