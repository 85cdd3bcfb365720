"""The guard that keeps a semantic match from answering another question: numbers and negation.

Embeddings put "refund 20 euro" beside "refund 50 euro" and "I can log in" beside "I can't log
in" (negated pairs were measured at 0.83 to 0.9997 cosine over nine encoders), so no threshold
separates them. Two texts may share an answer only where their signatures are equal. In doubt the
guard refuses: a miss costs a model call, a wrong answer costs trust.
"""

from __future__ import annotations

import re
import unicodedata

_DIGITS = dict(
    zip(
        "零〇一二三四五六七八九壹贰叁肆伍陆柒捌玖",
        [0, 0, *range(1, 10), *range(1, 10)],
        strict=True,
    )
) | {"两": 2, "兩": 2}
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN_NUMERAL = re.compile(f"[{''.join([*_DIGITS, *_UNITS, *_MYRIADS])}]+")

# 一 is mostly an article (一个, 一下, 一样): it is a number beside one of these only.
_ONE = re.compile(
    r"(?<=[第周期拜月年])一|一(?=[元块塊圆圓天日月年号號点點分秒时時小周折倍岁歳円回])"
)
_NO_NUMBER = re.compile("千万别|千万不|万一|十分|万能|百货|四处|七夕|三星|统一|唯一")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")

# 能不能, 有没有: "whether or not" asks and does not negate.
_A_NOT_A = re.compile(r"(.)[不没沒]\1")
_ZH_IDIOM = re.compile(
    "不过|不過|不但|不仅|不僅|不管|不论|不論|不同|不好意思|不用谢|不客气|对不起|對不起|差不多"
    "|非常|无论|無論|[特区區类類级級识識性差告分个個]别|别[的人名墅]|未来|未來|没关系"
)
_ZH = re.compile("[不没沒无無未别勿莫非]")
_JA_IDIOM = re.compile(
    "な(?:ければ|くては)(?:なら|いけ)(?:ない|ません)|かもしれ(?:ない|ません)|少ない|危ない"
    "|(?:いただけ|頂け|くれ|もらえ|ください|下さい)ません"
)
_JA = re.compile("ません|ない|なかった|なく[てな]|ずに|なし|[不未非]|無(?!料|線|事)")
_KANA = re.compile("[\u3040-\u30ff]")

_MARKER = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were|have|has|had|ca|wo|would|could|should|need|must|ai)n'?t"
    r"|not|cannot|never|without|neither"
    r"|nicht|kein(?:e[nmrs]?)?|nie|niemals|ohne|nichts|niemand|weder"
    r"|sin|tampoco|pas|sans|non|senza|não|nao|sem"
    r"|n(?:e |')[\w']+(?: \w+)? (?:plus|personne|guère))\b"
)
# These double a marker in the same clause ("no he recibido nada") and negate alone without one.
_CONCORD = re.compile(
    r"\b(?:nothing|nobody|none|nor|nowhere"
    r"|nunca|jamás|nada|nadie|ning[uú]n[oa]?|ni|nenhuma?|ninguém|nem"
    r"|rien|jamais|aucune?|nessun[oa]?|niente|nulla|né)\b"
)
_CLAUSE = re.compile(r"[.,;:!?¿¡()\n]+\s")
# Counted apart: English, Spanish and Italian negate with it, in Portuguese it is "in the".
_NO = re.compile(r"\bno\b")


def signature(text: str) -> str:
    """Return what two texts must have in common to share an answer: numbers and negations.

    Numbers are the multiset of those written in digits of any script or in Chinese numerals;
    separators inside a number are kept as written. Negations are counted (not only their parity:
    two negated clauses are not none) for English, German, Spanish, French, Portuguese, Italian,
    Chinese and Japanese.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    numbers = " ".join(sorted(_numbers(folded)))
    return f"{numbers}|{_negations(folded)}|{len(_NO.findall(folded))}"


def compatible(a_text: str, b_text: str) -> bool:
    """Say whether the answer to one text may serve the other, were they similar enough."""
    return signature(a_text) == signature(b_text)


def _numbers(text: str) -> list[str]:
    if text.isascii():
        return _NUMBER.findall(text)
    text = re.sub(r"\d", lambda m: str(unicodedata.digit(m[0])), text)
    found = _NUMBER.findall(text)
    text = _NO_NUMBER.sub(" ", text)
    ones = {m.start() for m in _ONE.finditer(text)}
    for run in _HAN_NUMERAL.finditer(text):
        if run[0] != "一" or run.start() in ones:
            found.append(str(_han_value(run[0])))
    return found


def _han_value(numeral: str) -> int:
    if not any(c in _UNITS or c in _MYRIADS for c in numeral):
        return int("".join(str(_DIGITS[c]) for c in numeral))
    total = section = digit = 0
    for char in numeral:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _UNITS:
            section += (digit or 1) * _UNITS[char]
            digit = 0
        else:
            total += (section + digit or 1) * _MYRIADS[char]
            section = digit = 0
    return total + section + digit


def _negations(text: str) -> int:
    count = 0
    for clause in _CLAUSE.split(text):
        markers = len(_MARKER.findall(clause))
        count += markers or bool(_CONCORD.search(clause) and not _NO.search(clause))
    if text.isascii():
        return count
    if _KANA.search(text):
        return count + len(_JA.findall(_JA_IDIOM.sub(" ", text)))
    return count + len(_ZH.findall(_ZH_IDIOM.sub(" ", _A_NOT_A.sub(" ", text))))
