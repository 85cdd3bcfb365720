"""Negations in a text, counted by language; idioms that look like one are left out."""

from __future__ import annotations

import re

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
_ZH_ASKING = re.compile("不知道|不清楚|不明白|不懂|不确定")
_JA_ASKING = re.compile("わから(?:ない|ません)|分から(?:ない|ません)|知ら(?:ない|ません)")
_KANA = re.compile("[\u3040-\u30ff]")

_AUXILIARY = (
    "(?:(?:do|does|did|is|are|was|were|have|has|had|ca|wo|would|could|should|need|must|ai)n'?t"
    "|[a-z]+n't)"
)
_PLAIN = (
    "not|cannot|unable|never|without|neither|hardly|barely|scarcely|rarely|seldom"
    "|kaum"
    "|nicht|kein(?:e[nmrs]?)?|nie|niemals|ohne|nichts|niemand|weder"
    "|sin|tampoco|pas|sans|non|senza|não|nao|sem"
)
_MARKER = re.compile(
    rf"\b(?:{_AUXILIARY}|{_PLAIN}|no longer"
    r"|n(?:e |')[\w']+(?: \w+)? (?:plus|personne|guère))\b"
)
# These double a marker in the same clause ("no he recibido nada") and negate alone without one.
_ENGLISH_ALSO = "nothing|nobody|none|nor|nowhere"
_ALSO = (
    "nunca|jamás|nada|nadie|ning[uú]n[oa]?|ni|nenhuma?|ninguém|nem"
    "|rien|jamais|aucune?|nessun[oa]?|niente|nulla|né"
)
_CONCORD = re.compile(rf"\b(?:{_ALSO})\b")
_ALONE = re.compile(rf"\b(?:{_ENGLISH_ALSO})\b")  # English does not double them
_CLAUSE = re.compile(r"[.,;:!?¿¡()\n]+\s")
# Counted apart: English, Spanish and Italian negate with it, in Portuguese it is "in the".
_NO = re.compile(r"\bno\b(?! longer)")
# "I don't know why it was declined" asks why it was declined, "out of nowhere" denies nothing.
_ASKING = re.compile(
    r"\b(?:(?:do not|don'?t) (?:know|understand)|not sure|(?:can'?t|cannot) (?:find|figure) out"
    r"|out of nowhere|(?:weiss|verstehe) (?:ich )?nicht|no s[ée]|no entiendo"
    r"|ne (?:sais|comprends) pas"
    r"|non (?:so|capisco)|não (?:sei|entendo))\b"
)
_NEGATIVE = re.compile(rf"{_AUXILIARY}(?:'ve)?|{_PLAIN}|{_ENGLISH_ALSO}|{_ALSO}|no|ne|n'.*")


def negative(word: str) -> bool:
    """Say whether a case folded word can negate; without one, Latin script has no negation."""
    return _NEGATIVE.fullmatch(word) is not None


def negations(text: str) -> tuple[int, int]:
    """Return how many negations a text holds, and how often it says "no".

    Args:
        text: Case folded.
    """
    text = _ASKING.sub(" ", text)
    noes = len(_NO.findall(text))
    count = 0
    for clause in _CLAUSE.split(text):
        markers = len(_MARKER.findall(clause))
        count += markers or bool(_CONCORD.search(clause) and not _NO.search(clause))
        count += len(_ALONE.findall(clause))
    if text.isascii():
        return count, noes
    if _KANA.search(text):
        plain, marker = _JA_ASKING.sub(" ", _JA_IDIOM.sub(" ", text)), _JA
    else:
        plain, marker = _ZH_ASKING.sub(" ", _ZH_IDIOM.sub(" ", _A_NOT_A.sub(" ", text))), _ZH
    return count + len(marker.findall(plain)), noes
