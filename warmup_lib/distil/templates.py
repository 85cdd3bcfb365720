"""Templates: what prompts have in common that differ in names, literals and formatting only.

A template groups prompts for heat, and heads for prefixes. It is never an answer's key, nor part of
one: two prompts that differ in a number have different answers. Code blocks go through their
language's grammar (`code`), all else through `wording`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from warmup_lib.distil.code import Shape, parsed, shape
from warmup_lib.distil.volatile import Head
from warmup_lib.distil.wording import wording

_VERSION = "t1"

_FENCE = re.compile(r"```(?:(?P<tag>[\w+#.-]+)?[^\n`]*\n)?(?P<code>.*?)(?:```|\Z)", re.DOTALL)
_SQL = r"(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|WITH)\b"
_LINE = re.compile(
    rf"""[{{}};]\s*$ | ^\s*[}}\])] | \w\(.*\)\s*:?$ | \s(?:[-+*/|&%:]?=|=>|->)\s
    | ^\s*(?:@\w | (?:def|class|func|function|const|let|var|public|private|package|type)\s\w
        | (?:import|from)\s\S+(?:\s(?:import|as)\s.*)?$ | (?:return|raise|throw|yield|await)\b
        | (?:if|elif|for|while|with|try|else|except|finally|case)\b.*:$ | (?:pass|break|continue)$
        | {_SQL} | (?:FROM|WHERE|AND|OR|JOIN|LEFT|INNER|GROUP\ BY|ORDER\ BY|HAVING|LIMIT|VALUES)\b)
    """,
    re.VERBOSE,
)
"""A line that may be one of a program."""
_ONE_LINE = re.compile(rf"^\s*(?:{_SQL}|(?i:{_SQL}).*[*=;_])")
"""A program of one line that can't be mistaken for a sentence: a statement of SQL."""


@dataclass(frozen=True)
class Template:
    """The template of one prompt.

    Attributes:
        text: Readable: wording in lower case with blanks, code as its shape. Names, numbers, ids
            and literals are not in it, so far as `wording` and `code` can tell them.
        blocks: Pieces of code in it.
        unparsed: Of these, how many no grammar could parse: errors, or another language. They are
            blanked token by token, and marked so in the text.
    """

    text: str
    blocks: int
    unparsed: int

    @property
    def digest(self) -> str:
        """The identity, 32 hex digits; a group's name and no key."""
        return _digest(self.text)


def template(text: str) -> Template:
    """Return the template of a prompt as written, white space and letter case included.

    A ``` block is code where its mark or its syntax says so; lines without one are where they
    look like code and parse. Other text, in a block too, is wording.
    """
    parts: list[str] = []
    shapes: list[Shape] = []
    for piece in _pieces(text):
        if isinstance(piece, Shape):
            shapes.append(piece)
            mark = piece.language if piece.parsed else f"{piece.language}, not parsed"
            parts.append(f"```{mark}\n{piece.text}\n```")
        elif words := wording(piece):
            parts.append(words)
    unparsed = sum(not piece.parsed for piece in shapes)
    return Template("\n".join(parts), len(shapes), unparsed)


def head_digest(head: Head) -> str:
    """Return the identity of the template of a head: the same where moments and ids alone differ.

    These are the heads that `volatile` compares. Nothing else is blanked out: a head is written
    by few, and each of its words counts in a cache.
    """
    return _digest(*head.form)


def _digest(*parts: str) -> str:
    data = "\0".join([_VERSION, *parts]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def _pieces(text: str) -> Iterator[str | Shape]:
    """Yield text and code in their order."""
    if "\n" not in text and "```" not in text and not _ONE_LINE.match(text):
        yield text  # most are like this
        return
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    end = 0
    for fence in _FENCE.finditer(text):
        yield from _unmarked(text[end : fence.start()])
        end = fence.end()
        yield shape(fence["code"], fence["tag"] or "") or fence["code"]
    yield from _unmarked(text[end:])


def _unmarked(text: str) -> Iterator[str | Shape]:
    """Yield text, and code that stands in it without a mark."""
    lines = text.split("\n")
    start = 0
    for first, stop in _runs(lines):
        found = parsed("\n".join(lines[first:stop]))
        if found is not None:
            yield "\n".join(lines[start:first])
            yield found
            start = stop
    yield "\n".join(lines[start:])


def _runs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield where lines stand together that may be a program: from a first to before a last."""
    first = stop = None
    for number, line in enumerate([*lines, "."]):
        if _LINE.search(line):
            first, stop = number if first is None else first, number + 1
        elif first is not None and line[:1] in ("", " ", "\t"):
            stop = number + 1 if line.strip() else stop
        elif first is not None and stop is not None:
            if stop - first > 1 or _ONE_LINE.match(lines[first]):
                yield first, stop
            first = stop = None
