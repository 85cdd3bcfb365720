"""Names that nothing but their capital tells: people, firms, streets, products."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warmup_lib.guard.marks import in_pairs, mark

_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_CAPITAL = re.compile(r"(?:(?<=[\w,;%)&] )|(?<=\b[dl]'))[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ][\w-]*")
_WORD = re.compile(r"\w+")
# A firm or a code, where not all is written so: "TSB", but "SEND ME A CARD".
_ALL_CAPITALS = re.compile(r"(?<![\w&])[A-Z][A-Z&]+[A-Z](?![\w&])")
_FEW = 2
_REACH = 80
"""Characters before a capital that are looked at: the word before it, which may be a long one."""
_SHORT = re.compile("ASAP|ATMS?|CV[CV]|FAQ|HELP|HOW|IBAN|NEED|NOT|OTP|PINS?|SMS|URL|WHY")

# Who does something, at the beginning of a sentence: "Greta wants to know ...".
_FIRST = re.compile(
    r"(?:^|[.!?] )([A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+) "
    r"(?:wants|asks|asked|needs|says|said|told|tells|sent|gave|paid|and I)\b"
)
_NO_NAMES = re.compile(
    "(?:Any|Every|No|Some)(?:body|one)|Bank|Customer|He|It|Merchant|She|Shop|Who"
)

# In German every noun has a capital. None of these is a word of another of the languages.
_GERMAN = """
    auch auf bei beim bitte das dass den dir eine einem einen einer für geht gibt habe hätte ich
    ihr ist kann können lösche mein meine meinen meiner mich mit möchte muss nicht noch nur oder
    schalte sich sind stelle und vom wann warum welche welcher welches wenn werden wie wir wird
    würde zeige zum zur
"""
# What follows one of these is a thing that somebody wrote with a capital ("my Card").
_BEFORE_THINGS = """
    an any el gli her his il its la las le les lo los ma mes meu mi mia minha mio mis mon
    my no os our sa ses seu some son su sua sus ta tes that the their these this those ton tu
    tus um uma un una une your
"""
# "my Netflix", "the Lidl" are names, "my Card" is a thing.
_ENGLISH = "an any her his its my no our some that the their these this those your"
_OWNED = """
    address app array atm balance bank button cash class code company contract customer data
    database details direct email error file function identity internet invoice item laptop link
    list manager message method model money online order package page parcel password payment phone
    physical pin policy product profile report salary script seller server service settings
    statement string subscription support table team test text ticket top transaction transfer user
    virtual website
"""
_COMMON = """
    account accounts am an and app are as at atm atms balance bank be but by can card cards celsius
    could currency customer delivery did do does email exchange fahrenheit fee fees for from get had
    has have hello help hi how if im in invoice is it ive limit limits may me money my need no not
    of ok on online or order orders passcode password payment payments phone pin please question
    questions rate rates refund refunds should so sorry statement support thank thanks that the then
    there they this to today top transaction transactions transfer transfers up was we were what
    when where which who why will with would yes you your
"""
# Nobody writes one of these with a capital inside a sentence who has not done so with every word.
_SMALL = re.compile(
    r"(?<=\w )(?:A|An|And|Are|As|At|Been|By|Did|Do|Does|For|From|Has|Have|How|If|In|Is|It|My|Not|Of"
    r"|On|Or|Our|Out|That|The|This|To|Was|We|Were|When|Why|With|You|Your)\b"
)
_LONG = re.compile(r"\b[^\W\d_]{4,}")
_MOST = 0.8
_GERMAN_LETTER = re.compile("[äöß]", re.IGNORECASE)
_IS_GERMAN = frozenset(_GERMAN.split())
_IS_BEFORE_THINGS = frozenset(_BEFORE_THINGS.split())
_IS_ENGLISH = frozenset(_ENGLISH.split())
_IS_OWNED = frozenset(_OWNED.split())
_IS_COMMON = frozenset(_COMMON.split())


def in_han_or_kana(text: str) -> bool:
    """Say whether a text is Chinese or Japanese, at least in part."""
    return not text.isascii() and _HAN_OR_KANA.search(text) is not None


def names(text: str, words: Sequence[str]) -> set[str]:
    """Return the words that begin with a capital inside a sentence, but those that `mark` knows.

    In a Chinese or Japanese text every word in Latin letters is one. Where Most Words Have a
    Capital, none is.

    Args:
        text: As written.
        words: Its words.
    """
    if in_han_or_kana(text):
        found = [word for word in words if word.isascii() and len(word) > 1]
    else:
        capitals = _CAPITAL.finditer(text)
        found = [m[0] for m in capitals if not _is_thing(text, m.start())]
        initials = _ALL_CAPITALS.findall(text)
        found += [w for w in initials if len(initials) <= _FEW and not _SHORT.fullmatch(w)]
        found += [name for name in _FIRST.findall(text) if not _NO_NAMES.fullmatch(name)]
        if not found or _is_german(text, words) or _in_title_case(text):
            return set()
    paired = in_pairs(words)
    return {
        f"@{word.casefold()}"
        for word in found
        if not (word.casefold() in _IS_COMMON or mark(word) or word in paired)
    }


def _in_title_case(text: str) -> bool:
    """Say whether nearly all words have a capital, small ones too: then it tells nothing."""
    if _SMALL.search(text) is None:
        return False
    long: list[str] = _LONG.findall(text)
    return sum(word[0].isupper() for word in long) >= _MOST * len(long)


def _is_german(text: str, words: Sequence[str]) -> bool:
    said = (word.casefold() for word in words)
    return _GERMAN_LETTER.search(text) is not None or not _IS_GERMAN.isdisjoint(said)


def _is_thing(text: str, start: int) -> bool:
    before = text[max(0, start - _REACH) : start].split()
    if start < _REACH and len(before) == 1 and before[0].endswith(","):  # "Hello, Write a test"
        return True
    word = before[-1].casefold()
    if word in _IS_ENGLISH:
        thing = _WORD.match(text, start)
        return thing is not None and thing[0].casefold() in _IS_OWNED
    return word in _IS_BEFORE_THINGS
