"""Heads that are new each time because a moment or an id is written into them.

Such a head can't be warmed: tomorrow it will be another one. It is told from a new version of a
prompt by two things: only a moment or an id differs, and it does so again and again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

BLANK = "\N{WHITE SQUARE}"
"""What stands for all that was blanked out of a text."""

MIN_VARIANTS = 3
"""So many heads of one form in a day, and they are taken as one head with a moment or id in it."""

_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|june?|juni|july?|juli"
    r"|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|okt(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|dez(?:ember)?|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre"
    r"|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre"
    r"|diciembre"
    r"|يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر)"
)
_WEEKDAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag"
    r"|mittwoch|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves"
    r"|viernes|sábado|domingo|(?:星期|周|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?"
    r"|(?:السبت|الأحد|الاثنين|الإثنين|الثلاثاء|الأربعاء|الخميس|الجمعة))"
)
_NTH = r"\d{1,2}(?:st|nd|rd|th|er|\.)?"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\b)?"
_ID = (
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    r"\b[a-z]{1,12}[_-](?=[a-z]*\d)[0-9a-z]{8,}\b",
    r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{16,}\b",
    r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
)
_MOMENT = (
    rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[t ]{_TIME})?(?:z\b|\s?[+-]\d{{2}}:?\d{{2}}\b)?",
    r"\d{1,4}[./]\d{1,2}[./]\d{2,4}",
    r"(?:\d{2,4}年)?\d{1,2}月\d{1,2}[日号號]",
    rf"\b{_MONTH}\.?\s+{_NTH}(?:,?\s+\d{{4}})?\b",
    rf"\b{_NTH}\s+(?:of |de )?{_MONTH}\.?(?:,?\s+(?:de )?\d{{4}})?\b",
    _WEEKDAY,
    _TIME,
    r"\d{1,2}[时時点點]\d{1,2}分?",
)
_NUMBER = r"\d{6,}"
_VOLATILE = re.compile(
    # A UUID can begin like a date, and a date like an id: this is the order that tells them apart.
    rf"(?P<uuid>{_ID[0]})|(?P<timestamp>{'|'.join(_MOMENT)})|(?P<id>{'|'.join(_ID[1:])})"
    rf"|(?P<number>{_NUMBER})",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d|(?:-[a-f]{4}){3}-", re.IGNORECASE)
_WITHOUT_DIGITS = re.compile(_WEEKDAY, re.IGNORECASE)


def blank(text: str) -> str:
    """Return `text` with dates, times, UUIDs, hexadecimal ids and long digit runs blanked out."""
    # All but a weekday has a digit in it; most texts have none, and are looked through in a moment.
    return (_VOLATILE if _DIGIT.search(text) else _WITHOUT_DIGITS).sub(BLANK, text)


@dataclass(frozen=True)
class Head:
    """One distinct head.

    Attributes:
        group: Tenant, model and adapter.
        digest: Its identity.
        system_prompt: As sent; empty: none.
        tools: JSON; empty: none.
    """

    group: Hashable
    digest: str
    system_prompt: str
    tools: str

    @cached_property
    def form(self) -> tuple[str, str]:
        """System prompt and tools with moments and ids blanked out."""
        return blank(self.system_prompt), blank(self.tools)


@dataclass(frozen=True)
class _Span:
    """One moment or id: what it is, where it stands, and its text, which is never shown."""

    kind: str
    place: str
    text: str


def volatile(heads: Iterable[Head]) -> dict[str, str]:
    """Return the digests of heads that differ from others in a moment or an id only.

    Args:
        heads: Distinct heads; only heads of one group are compared.

    Returns:
        By digest: kind and place of the first of what differs, and how many more there are, such
        as `timestamp at characters 14-38, 1 more`. Characters are counted from 0, the end not
        included, in the system prompt unless it says otherwise; none of the text is in it.
    """
    forms: dict[tuple[Hashable, str, str], dict[str, list[_Span]]] = defaultdict(dict)
    for head in heads:
        if head.form != (head.system_prompt, head.tools):
            found = [*_spans(head.system_prompt, ""), *_spans(head.tools, " of the tools")]
            forms[head.group, *head.form][head.digest] = found
    told: dict[str, str] = {}
    for same in forms.values():
        if len(same) >= MIN_VARIANTS:
            # Equal forms have their moments and ids in equal numbers and in one order.
            columns = zip(*same.values(), strict=True)
            differ = [len({span.text for span in column}) > 1 for column in columns]
            if any(differ):
                told |= {digest: _told(spans, differ) for digest, spans in same.items()}
    return told


def _spans(text: str, where: str) -> Iterator[_Span]:
    for found in _VOLATILE.finditer(text):
        kind = "id" if found.lastgroup == "uuid" else str(found.lastgroup)
        yield _Span(kind, f"characters {found.start()}-{found.end()}{where}", found[0])


def _told(spans: list[_Span], differ: list[bool]) -> str:
    first, *others = [span for span, differs in zip(spans, differ, strict=True) if differs]
    more = f", {len(others)} more" if others else ""
    return f"{first.kind} at {first.place}{more}"
