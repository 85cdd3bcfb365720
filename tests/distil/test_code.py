"""The shape of code: what changes it and what does not."""

from __future__ import annotations

import argparse
import ast
import csv
import heapq
import importlib.util
import inspect
import io
import itertools
import json.decoder
import keyword
import re
import shutil
import statistics
import textwrap
import tokenize
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Name, Number, String

from tests.distil.snippets import GO, JAVA, JAVASCRIPT, OTHER, PYTHON, SAME, SQL, Change
from warmup_lib.distil.code import parsed, shape
from warmup_lib.distil.near import MAX_CHARS

SNIPPETS = {"python": PYTHON, "javascript": JAVASCRIPT, "go": GO, "sql": SQL, "java": JAVA}


def shape_of(code: str, language: str) -> str:
    """Return the shape of code that has to parse."""
    found = shape(code, language)
    assert found is not None
    assert found.parsed, code
    return found.text


def name_of(change: Change) -> str:
    return f"{change.language}-{change.name}"


@pytest.mark.parametrize("change", SAME, ids=name_of)
def test_names_literals_comments_and_formatting_change_no_shape(change: Change) -> None:
    assert shape_of(change.changed, change.language) == shape_of(change.code, change.language)


@pytest.mark.parametrize("change", OTHER, ids=name_of)
def test_an_operator_a_branch_or_another_construct_does(change: Change) -> None:
    assert shape_of(change.changed, change.language) != shape_of(change.code, change.language)


def test_shapes_hold_neither_names_nor_literals() -> None:
    for language, code in SNIPPETS.items():
        text = shape_of(code, language)
        for word in ("orders", "month", "total", "customer", "net", "cancelled", "19", "20"):
            assert word not in text.lower(), (language, word)


def test_a_shape_by_hand() -> None:
    assert shape_of("def f(a, *b):\n    if a > 1:\n        return -a", "python") == (
        "(module (function_definition def $ (parameters $ (list_splat_pattern * $)) :"
        " (if_statement if (comparison_operator $ > #) :"
        " (return_statement return (unary_operator - $)))))"
    )


@pytest.mark.parametrize("language", SNIPPETS)
def test_code_without_a_mark_is_told_by_its_syntax(language: str) -> None:
    marked, told = shape(SNIPPETS[language], language), parsed(SNIPPETS[language])
    assert told == marked == shape(SNIPPETS[language])


OPERATORS = {
    ("python", "x = a {} b"): "+ - * / // % ** @ << >> & | ^ == != < > <= >= and or in is",
    ("python", "a {} b"): "= += -= *= /= //= %= **= @= &= |= ^= >>= <<=",
    ("python", "x = {} b"): "- + ~ not await",
    (
        "javascript",
        "x = a {} b",
    ): "+ - * / % ** << >> >>> & | ^ == != === !== < > <= >= && || ?? in",
    ("javascript", "a {} b"): "= += -= *= /= %= **= &= |= ^= >>= <<= >>>= &&= ||= ??=",
    ("javascript", "x = {} b"): "- + ~ ! typeof void delete await ++ --",
    ("go", "x = a {} b"): "+ - * / % << >> & | ^ &^ == != < > <= >= && ||",
    ("go", "a {} b"): "= := += -= *= /= %= &= |= ^= >>= <<= &^=",
    ("go", "x = {} b"): "- + ^ ! * & <-",
    ("java", "x = a {} b;"): "+ - * / % << >> >>> & | ^ == != < > <= >= && || instanceof",
    ("java", "a {} b;"): "= += -= *= /= %= &= |= ^= >>= <<= >>>=",
    (
        "sql",
        "SELECT * FROM t WHERE a {} b",
    ): "+ - * / % = < > <= >= <> AND OR LIKE ILIKE || -> ->> ~",
}


@pytest.mark.parametrize(("language", "form"), OPERATORS)
def test_every_operator_has_a_shape_of_its_own(language: str, form: str) -> None:
    operators = OPERATORS[language, form].split()
    shapes = {shape_of(form.format(operator), language) for operator in operators}
    assert len(shapes) == len(operators)


def test_json_is_a_literal_of_javascript() -> None:
    assert shape_of('{"a": [1, null]}', "json") == shape_of('{ "b":\n ["x", true] }', "json")
    assert shape_of('{"a": [1, null]}', "json") != shape_of('{"a": {"b": 1}}', "json")


def test_quotes_around_the_key_of_an_object_are_formatting() -> None:
    bare = "const x = {a: b, when: f(c > 1), list: [{d: 2}]};"
    assert shape_of(bare, "javascript") == shape_of(
        """const x = {"k": b, 'at': f(c > 1), "list": [{d: 2}, {"d": 3}]}""", "javascript"
    )
    for other in (
        bare.replace(">", "<"),
        bare.replace("a:", "[a]:"),
        bare.replace("a: b", "b"),
        bare.replace("{a: b", "{...b"),
        bare.replace("{d: 2}", "{d}"),
    ):
        assert shape_of(other, "javascript") != shape_of(bare, "javascript"), other
    assert shape_of("x = {a: b}", "python") != shape_of("x = {'a': b}", "python")


def test_how_many_literals_a_collection_has_is_its_value() -> None:
    assert shape_of("x = [1, 2, 3]", "python") == shape_of("x = ['a']", "python")
    assert shape_of("x = [1, y, 3]", "python") != shape_of("x = [1, 3]", "python")
    assert shape_of("f(1, 2)", "python") != shape_of("f(1)", "python")
    one, many = "INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')"
    assert shape_of(one, "sql") == shape_of(many, "sql")


def functions() -> list[str]:
    """Return the source of real functions: those of some modules of the standard library."""
    found = []
    for module in (argparse, csv, heapq, json.decoder, shutil, statistics, textwrap):
        members = [one for _, one in inspect.getmembers(module, inspect.isfunction)]
        for _, kind in inspect.getmembers(module, inspect.isclass):
            members += [one for one in vars(kind).values() if inspect.isfunction(one)]
        sources = (inspect.getsource(m) for m in members if m.__module__ == module.__name__)
        found += [textwrap.dedent(source) for source in sources]
    return [s for s in found if s.startswith(("def ", "@")) and len(s) <= MAX_CHARS]


FUNCTIONS = functions()


def renamed(source: str) -> str:
    """Return the same code with other names, numbers and strings, by its tokens."""
    tokens = []
    for kind, text, *_ in tokenize.generate_tokens(io.StringIO(source).readline):
        if kind == tokenize.NAME and not keyword.iskeyword(text):
            text = f"other_{text}"
        elif kind == tokenize.NUMBER:
            text = "4711"
        elif kind == tokenize.STRING and text[0] in "'\"":
            text = "'something else'"
        tokens.append((kind, text))
    return tokenize.untokenize(tokens)


def test_real_functions_keep_their_shape_when_written_anew() -> None:
    assert len(FUNCTIONS) > 200
    for source in FUNCTIONS:
        written = ast.unparse(ast.parse(source))  # without comments, in another layout
        assert shape_of(written, "python") == shape_of(source, "python"), source
        assert shape_of(renamed(source), "python") == shape_of(source, "python"), source


class _Flip(ast.NodeTransformer):
    """Changes the first operator of a function into another one."""

    OTHERS = {  # noqa: RUF012
        ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.Add,
        ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.In: ast.NotIn,
        ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
        ast.GtE: ast.Lt, ast.LtE: ast.Gt,
    }  # fmt: skip

    def __init__(self) -> None:
        self.done = False

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not self.done and type(node) in self.OTHERS:
            self.done = True
            return self.OTHERS[type(node)]()
        return super().generic_visit(node)


def test_real_functions_change_their_shape_with_an_operator_or_a_branch() -> None:
    flipped = 0
    for source in FUNCTIONS:
        before = shape_of(source, "python")
        flip = _Flip()
        other = ast.unparse(flip.visit(ast.parse(source)))
        if flip.done:
            flipped += 1
            assert shape_of(other, "python") != before, source
        tree = ast.parse(source)
        function = tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        function.body.insert(len(function.body), ast.parse("if unlikely:\n    give_up()").body[0])
        assert shape_of(ast.unparse(tree), "python") != before, source
    assert flipped > 100


def scripts() -> list[str]:
    """Return real JavaScript: the parts of files that installed packages bring."""
    found = []
    for package, file in (
        ("matplotlib", "backends/web_backend/js/mpl.js"),
        ("matplotlib", "backends/web_backend/js/nbagg_mpl.js"),
        ("sklearn", "utils/_repr_html/estimator.js"),
        ("torch", "utils/model_dump/code.js"),
    ):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        path = Path(spec.origin).parent / file
        if path.exists():
            text = path.read_text(encoding="utf-8")
            # A part begins where a line begins after an empty one.
            found += [p for p in re.split(r"\n\n(?=[a-z])", text) if "function" in p]
    return [part for part in found if (s := shape(part, "js")) is not None and s.parsed]


SCRIPTS = scripts()


def rewritten(script: str, *, operators: bool = False) -> str:
    """Return JavaScript with other names, literals, comments and white space, by its tokens.

    Args:
        script: The code.
        operators: Turn the first comparison or sum into another one as well.
    """
    others = {"===": "!==", "==": "!=", "+": "-", "<": ">", "&&": "||", "!==": "===", ">": "<"}
    parts = []
    for kind, text in get_lexer_by_name("javascript").get_tokens(script):
        if kind in Name.Other:
            text = f"other{text}"
        elif kind in Number:
            text = "4711"
        elif kind in String.Single or kind in String.Double:
            text = "'x'"
        elif kind in Comment:
            text = "\n"
        elif text.isspace():
            text = text.replace(" ", "\t") + ("  // so\n" if "\n" in text else "")
        elif operators and text in others:
            text, operators = others[text], False
        parts.append(text)
    return "".join(parts)


def test_real_scripts_keep_their_shape_when_written_anew_and_lose_it_with_an_operator() -> None:
    flipped = 0
    assert len(SCRIPTS) > 40
    for script in SCRIPTS:
        assert shape_of(rewritten(script), "javascript") == shape_of(script, "javascript"), script
        other = rewritten(script, operators=True)
        # In a template string the lexer takes text for operators.
        if other != rewritten(script) and "`" not in script:
            flipped += 1
            assert shape_of(other, "javascript") != shape_of(script, "javascript"), script
    assert flipped > 15


def test_code_with_errors_is_cut_into_tokens_and_says_so() -> None:
    broken = PYTHON.replace("):", ")", 1)
    found = shape(broken, "python")
    assert found is not None
    assert (found.language, found.parsed) == ("python", False)
    for edits in (("tax", "rate"), ("0.19", "'much'"), ("total = 0", "total   =  0  # none")):
        other = shape(broken.replace(*edits), "python")
        assert other == found, edits
    assert shape(broken.replace("*", "/"), "python") != found
    assert "order" not in found.text
    told = shape(broken)
    assert told == found


@pytest.mark.parametrize(
    ("tag", "code", "same", "other"),
    [
        (
            "cpp",
            "int f(int a) { return a + 1; } // x",
            "long g(long b)\n{ return b + 2; }",
            "a - 1",
        ),
        ("rust", "let x = y.len() + 1;", "let z = w.size() + 0x10; // w", "let x = y.len() * 1;"),
        ("yaml", "a: [1, 2]", "b:   [3, 4]  # z", "a: {b: 1}"),
    ],
)
def test_other_languages_are_cut_into_tokens(tag: str, code: str, same: str, other: str) -> None:
    found = shape(code, tag)
    assert found is not None
    assert not found.parsed
    assert shape(same, tag) == found
    assert shape(other, tag) != found


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("", "python"),
        ("  \n", ""),
        ("the parcel is late", ""),
        ("the parcel is late", "text"),
        ("the parcel is late", "no-such-language"),
        ("x = 1\n" * (MAX_CHARS // 6 + 1), "python"),
    ],
)
def test_what_is_no_code_or_too_long_has_no_shape(code: str, tag: str) -> None:
    assert shape(code, tag) is None
    assert parsed(code) is None


@pytest.mark.parametrize("code", ["x = " + "a + " * 4000 + "a", "x = " + "[" * 4000 + "]" * 4000])
def test_code_may_be_nested_deeply(code: str) -> None:
    assert len(shape_of(code, "python")) > len(code)


@settings(deadline=None, max_examples=200)
@given(
    st.text(st.sampled_from("abc=+(){}[]\"'`:;,.\n\t #/*<>$\ud800\u9000" + "01"), max_size=80),
    st.sampled_from([*SNIPPETS, "cpp", "bash", "yaml", "diff", ""]),
)
def test_any_text_can_be_asked_for_and_white_space_around_it_does_not_count(
    code: str, tag: str
) -> None:
    found = shape(code, tag)
    assert found == shape(code, tag)
    if found is not None and found.parsed:
        assert shape(f"\n{code}\n\n", tag) == found


def test_different_languages_have_different_shapes() -> None:
    pairs = itertools.combinations(SNIPPETS.items(), 2)
    assert all(shape(a, one) != shape(b, other) for (one, a), (other, b) in pairs)
