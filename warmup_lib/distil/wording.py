"""The wording of a text: its sentences with all that differs from asker to asker blanked out.

Blanked are moments, ids, numbers in digits and words, amounts with their currency, addresses, file
names, codes, quotes, known places and products, and names as far as their writing tells them.
What is a moment or an id is said in `volatile`, what is a literal, thing or name in the guard.

A capital tells a name where a script has capitals and the sentence did not just begin; in German,
where every noun has one, only two of them together do. Arabic, Chinese and Japanese have none:
there a person's name is told by a title beside it, and other names stay. A name in lower case, or
at the beginning of a sentence, stays too. Errors split or join groups; nothing else rests on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from warmup_lib.distil.near import SENTENCE
from warmup_lib.distil.volatile import BLANK, blank
from warmup_lib.guard.literals import find_literals
from warmup_lib.guard.marks import NUMBER, THING, find_things, in_pairs, mark
from warmup_lib.guard.names import names
from warmup_lib.guard.numerals import han_numerals
from warmup_lib.guard.things import SYMBOLS
from warmup_lib.keys import canonical_text

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_WITHOUT_CASE = re.compile("[\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff]")
# Without a digit there is a weekday at most, which is a known thing in Latin letters.
_MAY_HOLD_A_MOMENT = re.compile(r"\d|" + _WITHOUT_CASE.pattern)
_REDACTED = re.compile(r"<[A-Z]{3,}>")  # what ingest put in the place of personal data
_AMOUNT = re.compile(rf"[{''.join(SYMBOLS)}]|\d+(?:[.,:/\u066b\u066c-]\d+)*(?:\s?%)?")
_SURNAMES = (
    "王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何林高罗羅郑鄭梁谢謝宋唐许許邓鄧冯馮韩韓曹曾彭萧蔡"
    "潘田董袁于余叶葉蒋蔣杜苏蘇魏程吕呂丁沈任姚卢盧傅钟鍾姜崔谭譚廖范汪陆陸金石戴贾賈韦韋夏邱方侯邹鄒熊孟"
    "秦白江阎閻薛尹段雷黎史龙龍陶贺賀顾顧毛郝龚龔邵万萬钱錢严嚴武"
)
_TITLED = re.compile(
    rf"[{_SURNAMES}][\u4e00-\u9fff]{{0,2}}?(?=先生|女士|小姐|太太|老师|老師|教授|医生|醫生)"
    r"|(?<![\u3040-\u30ff\u4e00-\u9fff])[\u4e00-\u9fff]{2,4}(?=さん|様|氏)"
    r"|(?:(?<=سيد )|(?<=سيدة )|(?<=دكتور )|(?<=دكتورة ))\w+"
)
# The full stop of a title ends no sentence.
_TITLE = re.compile(r"\b(M|Mr|Mrs|Ms|Mme|Mlle|Dr|Prof|Sr|Sra|Sig|Hr|Fr)\. (?=\w)")
_FOREIGN = str.maketrans("؟،؛\u2019", "?,;'")
_JOINED = re.compile(rf"{BLANK}[.,;:!?…。、]*(?:[\s/&+\u2013-]*{BLANK}[.,;:!?…。、]*)*")
_BLANKED = (NUMBER, THING)
_TITLE_CASE_WORDS = 6
"""From so many words on, a text of which most have a capital is a heading, not a list of names."""


def wording(text: str) -> str:
    """Return a text in lower case, white space folded, blanks for all that is not wording.

    Args:
        text: As written, without code.
    """
    text = _REDACTED.sub(BLANK, canonical_text(text)).translate(_FOREIGN)
    if _MAY_HOLD_A_MOMENT.search(text):
        text = blank(text)
    text = _without(text, (m.span() for m in find_literals(text)))
    text = _TITLE.sub(r"\1 ", text)
    text = _without(text, _names(text))
    if _WITHOUT_CASE.search(text):
        text = _TITLED.sub(BLANK, text)
        text = _without(text, (m.span() for m in find_things(text)))
        text = _without(text, (m.span(1) for m in han_numerals(text)))
    text = SENTENCE.sub("", _AMOUNT.sub(BLANK, text))
    return " ".join(_JOINED.sub(f" {BLANK} ", text).casefold().split())


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts, end = [], 0
    for start, stop in spans:
        parts += [text[end:start], BLANK]
        end = stop
    return "".join([*parts, text[end:]]) if parts else text


def _names(text: str) -> list[tuple[int, int]]:
    """Return where number words, things and names stand, in order."""
    found = list(_WORD.finditer(text))
    words = [m[0] for m in found]
    told = names(text, words)
    other = _capitals(text, found) | in_pairs(words)
    return [
        m.span()
        for m, word in zip(found, words, strict=True)
        if mark(word)[:1] in _BLANKED or word in other or f"@{word.casefold()}" in told
    ]


def _capitals(text: str, words: list[re.Match[str]]) -> set[str]:
    """Return the words whose capital tells a name though the guard leaves them alone.

    These are two or more capitals together, and one where the script is neither Latin nor without
    case: the guard reads Latin only, and no German.
    """
    inside = [m for m in words if m[0][0].isupper() and _is_name(text, m)]
    if len(words) >= _TITLE_CASE_WORDS and 2 * len(inside) > len(words):
        return set()
    together = {
        m[0]
        for one, other in pairwise(inside)
        if text[one.end() : other.start()] in (" ", "-")
        for m in (one, other)
    }
    return together | {m[0] for m in inside if m[0][0] > "\u036f"}


def _is_name(text: str, word: re.Match[str]) -> bool:
    """Say whether a word with a capital is neither the first of its sentence nor all capitals."""
    before = text[max(word.start() - 2, 0) : word.start()]
    within = before[1:] in (" ", "-") and (before[0].isalnum() or before[0] in ",;%)")
    return within and word[0][1:].islower()
