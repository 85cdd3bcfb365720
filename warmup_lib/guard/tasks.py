"""What is asked about a piece of code: beside a long listing, the words that say so weigh little.

Looked at only in texts with a ``` block. There "write tests for this" and "make this faster" have
nearly the same vector, because nearly all of both is the code. Reviews and repairs are the usual
question, which people ask in any words, and have none here: of two tasks one is enough.
"""

from __future__ import annotations

import re

_TASKS = {
    "test": (
        r"tests?|testing|unittests?|pytest|edge cases|prüf\w*|testes?|pruebas?",
        "测试|要测|该测|テスト",
    ),
    "translate": (
        r"translat\w*|convert\w*|rewrit\w*|port|ported|porting|equivalent|version|übersetz\w*"
        r"|traduc\w*|tradui\w*|traduz\w*|conviert\w*",
        "翻译|改写|转成|转换成|怎么写|書き換え|変換",
    ),
    "speed": (
        r"faster|slow|slower|speed|optimi[sz]\w*|bottlenecks?|avoid|takes? (?:minutes|hours|ages)"
        r"|takes? (?:forever|too long)|schneller|langsam|beschleunig\w*|rápid\w*|lent[aoe]\w*"
        r"|accélér\w*",
        "慢|卡|加速|优化|瓶颈|避免|高速|遅い",
    ),
    "explain": (r"explain\w*|erklär\w*|explic\w*|expliqu\w*|spieg\w*", "解释|说明|説明"),
}
_ASKED = {
    task: re.compile(rf"\b(?:{words})\b|{in_han_or_kana}")
    for task, (words, in_han_or_kana) in _TASKS.items()
}
_REVIEWS = re.compile(r"\breview\w*\b|审查|レビュー")
# `names` takes a capital after an article for that of a thing.
_LANGUAGE = re.compile(r"\bthe (Go|C|R|Swift|Scala)\b")


def tasks(said: str) -> set[str]:
    """Return what the words of a text ask to be done with its code.

    Args:
        said: The text without its code blocks.
    """
    folded = said.casefold()
    if _REVIEWS.search(folded):
        return set()
    found = {f"-{task}" for task, words in _ASKED.items() if words.search(folded)}
    return found | {f"@{m[1].casefold()}" for m in _LANGUAGE.finditer(said)}
