"""Parts of a text that are meant letter by letter: codes, quotes, addresses, files, code words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warmup_lib.guard.marks import listed, mark
from warmup_lib.guard.units import UNITS

_ENDINGS = (
    "py|js|ts|tsx|jsx|java|kt|rs|go|rb|php|c|h|cpp|cs|sh|sql|md|txt|csv|"
    "json|yaml|yml|toml|xml|html|css|pdf|docx|xlsx|xls|png|jpg|zip|gz|log|"
    "ini|cfg|env|lock|parquet|ipynb|com|org|net|io|dev|de|fr|es|it|pt|cn|jp|"
    "uk|eu|gov|edu|ai|app"
)
# An address or a file is looked for at the start of a run of its characters only, and a quotation
# up to the next mark that opens one: otherwise they would take the square of time.
_LITERAL = re.compile(
    r"""(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | (?:https?://|www\.)[^\s"'<>]+
    | `[^`\n]+` | "[^"\n]+" | «[^«»\n]+» | „[^„“”"\n]+[“”"] | “[^“”\n]+”
    | 「[^「」\n]+」 | 『[^『』\n]+』
    | (?<![\w'])'[^'\n]+'(?!\w)
    | (?<![\w./-])[./-]*\w[\w./-]*\.(?:ENDINGS)\b
    | \b[A-Za-z]\w*_\w+ | \b\w+(?=\(\)) | \b[a-z]+[A-Z]\w*
    | (?<!\S)--?[a-z][\w-]* | \b[CcFf](?:\+\+|\#)
    | \b[A-Za-z]+(?:-?\d)[\w-]* | \b\d+(?:-?[A-Za-z])[\w-]*""".replace("ENDINGS", _ENDINGS),
    re.VERBOSE,
)
_HINT = re.compile(r"[@`\"«„“「『_(/\d#]|\+\+|\.[a-z]|[a-z][A-Z]|(?<!\w)['-]")
_QUOTES = "`\"'«»„“”「」『』 "
_SPACES = re.compile(r"\s+")
_STRING = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'")
_AMOUNT = re.compile(r"\d+-?([a-z]+)")
_AFTER_NUMBERS = {*listed(UNITS), "st", "nd", "rd", "th", "x"}


def literals(text: str) -> set[str]:
    """Return codes, quoted strings, addresses, file names and names of code, in lower case."""
    found = (m[0].casefold().strip(_QUOTES) for m in find_literals(text) if not _is_unit(m[0]))
    return {f"={_SPACES.sub('_', part)}" for part in found if not (_is_amount(part) or mark(part))}


def find_literals(text: str) -> Iterator[re.Match[str]]:
    """Return where the codes, quoted strings, addresses, file names and names of code stand."""
    return _LITERAL.finditer(text) if _HINT.search(text) else iter(())


def strings(code: str) -> set[str]:
    """Return the strings of a piece of code, in lower case: what it prints depends on them."""
    found = (m[1] or m[2] for m in _STRING.finditer(code))
    return {f"={_SPACES.sub('_', part.casefold().strip())}" for part in found}


def _is_unit(part: str) -> bool:
    """Say whether it is one as "kW", which looks like a name of code."""
    return part.isalpha() and part.casefold() in _AFTER_NUMBERS


def _is_amount(part: str) -> bool:
    amount = _AMOUNT.fullmatch(part)
    return amount is not None and amount[1] in _AFTER_NUMBERS
