"""The guard that keeps a semantic match from answering another question.

Embeddings put "refund 20 euro" beside "refund 50 euro", "I can log in" beside "I can't log in"
(negated pairs were measured at 0.83 to 0.9997 cosine over nine encoders) and "freeze my card"
beside "unfreeze my card", so no threshold separates them. Two texts may share an answer only where
their signatures are equal. In doubt the guard refuses: a miss costs a model call, a wrong answer
costs trust.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from warmup_lib.guard.literals import literals, strings
from warmup_lib.guard.marks import NEGATIVE, NUMBER, marks
from warmup_lib.guard.names import in_han_or_kana, names
from warmup_lib.guard.negation import negations
from warmup_lib.guard.numerals import in_digits, numbers, ordinals_in_words
from warmup_lib.guard.order import comparisons, in_order, kin_in_order, relations
from warmup_lib.guard.tasks import tasks

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")


def signature(text: str) -> str:
    """Return what two texts must have in common to share an answer.

    Four parts, joined by `|`:

    - the numbers in their order, in digits of any script, Chinese numerals or small number words,
      each with its sign and unit;
    - the count of negations (not only their parity: two negated clauses are not none);
    - apart from it, that of the word "no", which Portuguese has as "in the";
    - the set of poles ("off", "unlock", "before" ...), places, dates, currencies, products and
      other names, codes, quoted strings, addresses and file names; the order of several places,
      days, currencies, products or names, but not around "or"; the way "from A to B" or "kilometers
      to miles", what is "older than" what, what is done with two numbers, "under" a number, "ago",
      and Roman numerals.

    Inside a ``` code block numbers, known words, strings and comparisons count, names don't: two
    pieces of code rarely agree in them, and what is asked about them often does not depend on them.
    What is asked about it (tests, a translation, more speed ...) counts as a pole.

    Who does what to whom in common words ("the dog bites the man") is not read, nor are names in
    lower case that are in no list.

    Languages are English, German, Spanish, French, Portuguese, Italian, Chinese and Japanese. Case
    matters for names only, which are told by it: not at the beginning of a sentence and not in
    German, where every noun has a capital.
    """
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    plain = ordinals_in_words(plain)
    words = _WORD.findall(plain)
    found = marks(plain, words)
    in_words = NUMBER in found
    folded = plain.casefold()
    digits = in_digits(folded, in_words)
    amounts = numbers(digits)
    negated = noes = 0
    if NEGATIVE in found or in_han_or_kana(plain):
        negated, noes = negations(folded)
    found -= {NUMBER, NEGATIVE}
    said = plain
    if "```" in plain:
        said = _CODE.sub(" ", plain)
        words = _WORD.findall(said)
        digits = in_digits(said.casefold(), in_words)
        code = "\n".join(_CODE.findall(plain))
        found |= tasks(said) | strings(code) | comparisons(code)
        # "Why is this slow?" and "Make this faster" ask the same of a piece of code.
        if "-speed" in found:
            found.discard("-slow")
    found |= names(said, words)
    found |= kin_in_order(words, found) | in_order(said, words, found)
    found |= relations(said, digits, words) | literals(said)
    return "|".join([" ".join(amounts), str(negated), str(noes), " ".join(sorted(found))])


def tag(text: str) -> str:
    """Return the signature as 16 hex digits, which a search index can filter by."""
    return hashlib.sha256(signature(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def compatible(a_text: str, b_text: str) -> bool:
    """Say whether the answer to one text may serve the other, were they similar enough."""
    return signature(a_text) == signature(b_text)
