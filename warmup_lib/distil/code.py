"""The shape of a piece of code: its syntax without names, literals, comments and formatting.

Code of a known language goes through its grammar. What stays are the kinds of its constructs, how
they are nested, and their operators and keywords. Code that does not parse, and code of any other
language, is cut into tokens instead, of which the same is blanked out: there, brackets and
separators stay, and the shape is marked as not parsed.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from warmup_lib.distil.grammars import Grammar, likely, tagged
from warmup_lib.distil.near import MAX_CHARS
from warmup_lib.distil.wording import wording

if TYPE_CHECKING:
    from tree_sitter import Node

NAME = "$"
LITERAL = "#"


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


_NAMES = _kinds("""
    identifier property_identifier shorthand_property_identifier private_property_identifier
    shorthand_property_identifier_pattern type_identifier field_identifier package_identifier
    statement_identifier label_name blank_identifier dotted_name scoped_identifier nested_identifier
    scoped_type_identifier nested_type_identifier qualified_type object_reference predefined_type
    integral_type floating_point_type boolean_type void_type
""")
_LITERALS = _kinds("""
    integer float string concatenated_string number regex template_string literal
    true false none null nil undefined
""")
_NO_LITERALS = _kinds("composite_literal func_literal class_literal")
_INTERPOLATED = _kinds("interpolation template_substitution string_interpolation")
_IN_INTERPOLATED = _kinds("type_conversion format_specifier")
_SAME = {"expression_list": "tuple", "pattern_list": "tuple_pattern"}
_TRANSPARENT = _INTERPOLATED | _kinds("""
    parenthesized_expression parenthesized_type expression_statement statement_list type
    literal_type literal_element
""")
_ALONE = _kinds("""
    block statement_block formal_parameters required_parameter expression_list argument_list
    arguments
""")
"""With one thing inside they are that thing: braces and brackets around it are formatting."""
_COLLECTIONS = _kinds("list set tuple array literal_value array_initializer")
_SIGNED = _kinds("unary_operator unary_expression")
_UNSAID = _kinds("( ) [ ] { } ${ , ; ' \" `")

_ELIF = "(elif_clause elif "
_BARE, _QUOTED = f"(pair {NAME} :", f"(pair {LITERAL} :"
"""A member of a JavaScript object: its key is the same text with quotes and without."""

_SURE = 2
"""From so many signs of a language on, text in a code block is code though it does not parse."""


@dataclass(frozen=True)
class Shape:
    """What is left of a piece of code.

    Attributes:
        language: The grammar's name, or the lexer's.
        text: The shape, names as `$` and literals as `#`.
        parsed: Through a grammar, not token by token.
    """

    language: str
    text: str
    parsed: bool


def shape(code: str, tag: str = "") -> Shape | None:
    """Return the shape of what stands in a code block.

    Args:
        code: Of at most `MAX_CHARS` characters; longer code has none.
        tag: The language that it is marked with. Empty: it is told by its signs and by parsing it.

    Returns:
        None: this is no code, as far as can be told.
    """
    if len(code) > MAX_CHARS or not code.strip():
        return None
    if not tag:
        languages = likely(code, _SURE)
        return parsed(code) or (_lexed(code, languages[0].name) if languages else None)
    known = tagged(tag)
    if known is None:
        return _lexed(code, tag)
    return _parsed(code, [known]) or _lexed(code, known.name)


def parsed(code: str) -> Shape | None:
    """Return the shape of text that may be code; None: it has no signs of it, or does not parse."""
    return _parsed(code, likely(code)) if len(code) <= MAX_CHARS else None


def _parsed(code: str, grammars: list[Grammar]) -> Shape | None:
    code = textwrap.dedent(code)
    for grammar in grammars:
        root = grammar.parse(code)
        if root is not None:
            return Shape(grammar.name, _written(root), True)
    return None


def _written(root: Node) -> str:
    """Return a tree as text: kind and parts of each node, in brackets.

    The tree is walked without recursion, since code can be nested deeper than calls can.
    """
    whole: list[str] = []
    stack = [(root.type, _children(root, root.type), list[str](), whole)]
    while stack:
        kind, todo, parts, into = stack[-1]
        if not todo:
            stack.pop()
            into += _joined(kind, parts)
            continue
        child = todo.pop()
        leaf = _leaf(child, child.type)
        if leaf is None:
            stack.append((child.type, _children(child, child.type), [], parts))
        elif leaf:
            parts.append(leaf)
    return " ".join(whole)


def _children(node: Node, kind: str) -> list[Node]:
    """Return what is to be written of a node, last first; of a literal, what is set into it."""
    if not _is_literal(kind):
        return node.children[::-1]
    found, todo = [], [node]
    while todo:
        one = todo.pop()
        if one.type in _INTERPOLATED:
            found.append(one)
        else:
            todo += one.children[::-1]
    return found[::-1]


def _leaf(node: Node, kind: str) -> str | None:
    """Return what is written of a node without looking into it; None: look into it."""
    always = _always(kind)
    if always is not None:
        return always
    if _is_literal(kind):
        return None if node.child_count and _children(node, kind) else LITERAL
    if node.is_extra or _is_remark(node, kind):
        return ""
    if node.child_count:
        return None
    # SQL names its keywords and operators by groups: LIKE and ILIKE are one kind.
    if kind.startswith(("keyword_", "op_")):
        return (node.text or b"").decode("utf-8", "replace").lower()
    return kind


@lru_cache(1024)
def _always(kind: str) -> str | None:
    """Return what is written of any node of a kind; None: that depends on the node."""
    if kind in _NAMES:
        return NAME
    if kind in _UNSAID or kind in _IN_INTERPOLATED or not kind.strip():
        return ""
    return None if kind.replace("_", "").isalnum() else kind


@lru_cache(1024)
def _is_literal(kind: str) -> bool:
    return kind in _LITERALS or (kind.endswith("_literal") and kind not in _NO_LITERALS)


def _is_remark(node: Node, kind: str) -> bool:
    """Say whether this is a string alone in a line, such as a docstring."""
    if kind != "expression_statement" or node.named_child_count != 1:
        return False
    only = node.named_children[0]
    return only.type in ("string", "concatenated_string") and not _children(only, only.type)


def _joined(kind: str, parts: list[str]) -> list[str]:
    if _is_literal(kind):
        return [f"({LITERAL} {' '.join(parts)})"]
    if kind in _TRANSPARENT or (kind in _ALONE and len(parts) == 1):
        return [part for part in parts if part != "="]  # f"{x=}"
    if kind in _SIGNED and parts in (["-", LITERAL], ["+", LITERAL]):
        return [LITERAL]
    if kind == "if_statement":
        parts = _nested(parts)
    if kind == "object":
        parts = [_QUOTED + p[len(_BARE) :] if p.startswith(_BARE) else p for p in parts]
    kind = _SAME.get(kind, kind)
    return [f"({' '.join([kind, *_squashed(kind, parts)])})"]


def _nested(parts: list[str]) -> list[str]:
    """Return the parts of Python's `if` with each `elif` written as an `if` in an `else`."""
    tail: list[str] = []
    for part in reversed(parts):
        if part.startswith(_ELIF):
            inner = " ".join(["(if_statement if", part[len(_ELIF) : -1], *tail]) + ")"
            tail = [f"(else_clause else : {inner})"]
        else:
            tail.insert(0, part)
    return tail


def _squashed(kind: str, parts: list[str]) -> list[str]:
    """Return the parts without repeated literals of a collection: how many it has is its value."""
    if len(parts) == len(set(parts)):
        return parts
    kept: list[str] = []
    for part in parts:
        collected = kind in _COLLECTIONS or part[1:].partition(" ")[0] in _COLLECTIONS
        literal = LITERAL in part and NAME not in part
        if not (kept and part == kept[-1] and collected and literal):
            kept.append(part)
    return kept


def _lexed(code: str, name: str) -> Shape | None:
    """Return the shape of code token by token; None: there is no such language, or no code."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Literal, Name, Punctuation, Text
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(name)
    except ClassNotFound:
        return None
    parts: list[str] = []
    plain = True
    for kind, value in lexer.get_tokens(code):
        if kind in Comment or not value.strip():
            continue
        plain = plain and kind in Text
        if kind in Name or kind in Keyword.Type:
            part = NAME
        elif kind in Literal or kind in Keyword.Constant:
            part = LITERAL
        else:
            part = wording(value) if kind in Text else value.strip().casefold()
            if kind in Punctuation:  # which lexers cut where they like
                part = " ".join(part)
        if not (parts and part == parts[-1] == LITERAL):
            parts.append(part)
    return None if plain else Shape(lexer.aliases[0], " ".join(parts), False)
