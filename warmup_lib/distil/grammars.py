"""The languages whose code is parsed: by which names and signs they go, and their parsers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


@dataclass(frozen=True)
class Grammar:
    """One language.

    Attributes:
        name: What templates call it.
        tags: How code blocks are marked that hold it.
        signs: What its code has and other text hardly ever has.
        parsers: Modules that bring a grammar, each with the function that returns it; the next
            one is tried where one does not parse.
    """

    name: str
    tags: frozenset[str]
    signs: re.Pattern[str]
    parsers: tuple[tuple[str, str], ...]

    def parse(self, code: str) -> Node | None:
        """Return the root of the syntax tree; None: it is no whole code of this language."""
        data = code.encode("utf-8", "surrogatepass")
        for module, function in self.parsers:
            root = _parser(module, function).parse(data).root_node
            if root.child_count and not root.has_error:
                return root
        return None


def _grammar(name: str, tags: str, signs: str, *parsers: tuple[str, str]) -> Grammar:
    pattern = re.compile(signs, re.MULTILINE)
    return Grammar(name, frozenset([name, *tags.split()]), pattern, parsers)


GRAMMARS = (
    _grammar(
        "python",
        "py python3 py3 ipython",
        r"\bdef \w+\(|^\s*(?:from \S+ )?import \w|\belif\b|\bself\b|^\s*@\w+|\w\)?:$|\blambda\b"
        r"|\b(?:None|True|False)\b|\bprint\(|\bfor \w+ in\b",
        ("tree_sitter_python", "language"),
    ),
    _grammar(
        "javascript",
        "js jsx mjs node typescript ts tsx json json5",
        r"\bfunction\b|^\s*(?:const|let|var|export)\b|=>|===|!==|\bconsole\.|\$\{|\basync\b"
        r"|\bundefined\b|\btypeof\b|^\s*interface\b",
        ("tree_sitter_typescript", "language_tsx"),
        ("tree_sitter_typescript", "language_typescript"),
    ),
    _grammar(
        "go",
        "golang",
        r"\bfunc\b|:=|^\s*package \w+$|\bnil\b|\bfmt\.|\bchan\b|\bdefer\b|\bgo func\b|\bstruct \{",
        ("tree_sitter_go", "language"),
    ),
    _grammar(
        "java",
        "",
        r"\b(?:public|private|protected|static|final|void|throws)\b|\bnew \w+[(<\[]|@Override"
        r"|\bSystem\.out|\bString\b",
        ("tree_sitter_java", "language"),
    ),
    _grammar(
        "sql",
        "mysql postgres postgresql psql sqlite plsql bigquery",
        r"(?i:^\s*(?:select\b|insert into\b|update \S+ set\b|delete from\b|create table\b"
        r"|with \S+ as\b))|^\s*(?:FROM|WHERE|GROUP BY|ORDER BY|(?:LEFT |INNER )?JOIN)\b",
        ("tree_sitter_sql", "language"),
    ),
)

_BY_TAG = {tag: grammar for grammar in GRAMMARS for tag in grammar.tags}


def tagged(tag: str) -> Grammar | None:
    """Return the language that a code block is marked with; None: it is none of these."""
    return _BY_TAG.get(tag.lower())


def likely(code: str, at_least: int = 1) -> list[Grammar]:
    """Return the languages that text has at least so many signs of, most signs first."""
    counts = [(len(grammar.signs.findall(code)), grammar) for grammar in GRAMMARS]
    return [g for n, g in sorted(counts, key=lambda pair: -pair[0]) if n >= at_least]


@lru_cache
def _parser(module: str, function: str) -> Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(module), function)()))
