"""What is asked about a piece of code: beside a long listing, the words that say so weigh little.

Looked at only in texts with a ``` block. There "write tests for this" and "make this faster" have
nearly the same vector, because nearly all of both is the code.
"""

from __future__ import annotations

import re

_TASKS = {
    "test": (
        "tests?|testing|unittests?|pytest|edge cases|prüf\\w*|testes?|pruebas?|测试|要测|テスト"
    ),
    "translate": (
        "translat\\w*|convert\\w*|rewrit\\w*|port|ported|porting|equivalent|version|übersetz\\w*"
        "|traduc\\w*|tradui\\w*|traduz\\w*|conviert\\w*|convierte|翻译|改写|转成|转换成|怎么写|書き換え|変換"
    ),
    "speed": (
        "fast|faster|slow|slower|speed|optimi[sz]\\w*|performance|bottlenecks?|schneller|langsam"
        "|beschleunig\\w*|rápid\\w*|lent[aoe]\\w*|accélér\\w*|慢|加速|优化|性能|瓶颈|高速|遅い"
    ),
    "explain": "explain\\w*|erklär\\w*|explic\\w*|expliqu\\w*|spieg\\w*|解释|说明|説明",
    "repair": (
        "fix\\w*|bugs?|debug\\w*|errors?|exceptions?|fails?|failing|broken|fehler\\w*|erreurs?"
        "|corrig\\w*|errore|报错|错误|修复|エラー|バグ|修正"
    ),
    "document": "docstrings?|comments?|documentation|kommentare?|commentaires?|注释|文档|コメント",
    "review": "review\\w*|refactor\\w*|clean up|simplif\\w*|重构|审查|リファクタ\\w*",
}
_ASKED = {
    task: re.compile(
        "|".join(word if ord(word[0]) > 0x2FFF else rf"\b(?:{word})\b" for word in words.split("|"))
    )
    for task, words in _TASKS.items()
}
# `names` takes a capital after an article for that of a thing.
_LANGUAGE = re.compile(r"\b(?:the|this|that|my|these) (Go|C|R|Swift|Scala)\b")


def tasks(said: str) -> set[str]:
    """Return what the words of a text ask to be done with its code.

    Args:
        said: The text without its code blocks.
    """
    folded = said.casefold()
    found = {f"-{task}" for task, words in _ASKED.items() if words.search(folded)}
    return found | {f"@{m[1].casefold()}" for m in _LANGUAGE.finditer(said)}
