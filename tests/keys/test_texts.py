"""What holds for all texts: what says the same is one, and nothing else is."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.keys.reader import canonical, embedding
from tests.keys.strategies import fenced_texts, forms, odd_texts, of, spaces, texts, words
from warmup_lib.keys import canonical_text, embedding_text

CODE = st.text(st.sampled_from(" \t\nab1\ufb01\u00c5\u3000"), max_size=20)
FENCES = st.sampled_from(["```", "````", "\n~~~", "\n~~~~~"])


@given(odd_texts | fenced_texts)
def test_folding_twice_changes_nothing(text: str) -> None:
    once, seen = canonical_text(text), embedding_text(text)
    assert canonical_text(once) == once
    assert embedding_text(seen) == embedding_text(once) == seen


@given(odd_texts | fenced_texts)
def test_a_second_implementation_folds_alike(text: str) -> None:
    assert canonical_text(text) == canonical(text)
    assert embedding_text(text) == embedding(text)


@given(st.lists(words, min_size=1, max_size=5), spaces, spaces)
def test_white_space_outside_code_is_folded(parts: list[str], one: str, other: str) -> None:
    assert canonical_text(f" {one.join(parts)}{one}") == canonical_text(other.join(parts))


@given(st.lists(words, min_size=2, max_size=5), spaces, st.integers(1, 3))
def test_blank_lines_outside_code_are_folded(parts: list[str], space: str, lines: int) -> None:
    between = f"{space}\n" * lines + space
    assert canonical_text(between.join(parts)) == canonical_text("\n".join(parts))


@given(texts)
def test_newline_styles_are_one(text: str) -> None:
    assume("\r" not in text)
    for style in ("\r\n", "\r"):
        assert canonical_text(text.replace("\n", style)) == canonical_text(text)


@given(texts, texts)
def test_forms_of_the_same_characters_are_one(text: str, system: str) -> None:
    assume(not re.search("[`\u1fef\uff40]{3}|[~\uff5e]{3}", text + "|" + system))
    one = of(prompt=text, system_prompt=system)
    for form, head in zip(forms(text), forms(system), strict=True):
        other = of(prompt=form, system_prompt=head)
        assert (other.text, other.context, other.response) == (one.text, one.context, one.response)


@given(words, FENCES, CODE)
def test_code_keeps_what_it_is(word: str, fence: str, code: str) -> None:
    block = f"{fence}\n{code}\n{fence.strip()}"
    if fence.startswith("\n"):
        block = f"{fence}{code}\n{fence.strip()}"
    assert block in canonical_text(f"{word}  \n\n {block}  {word}")


@given(FENCES, CODE, CODE)
def test_code_that_differs_in_white_space_or_form_is_not_one(fence: str, a: str, b: str) -> None:
    assume(a != b)
    first, second = (of(prompt=f"run{fence}\n{code}\n{fence.strip()} please") for code in (a, b))
    assert first.response != second.response
    assert (first.text == second.text) is (a.casefold() == b.casefold())


@given(texts)
def test_case_matters_to_answers_and_not_to_embeddings(text: str) -> None:
    upper = text.upper()
    assume("\u0131" not in text)  # a letter without a dot, whose capital is that of another
    assume(canonical_text(upper) != canonical_text(text))
    assume(upper.casefold() == text.casefold())
    assert of(prompt=text).response != of(prompt=upper).response


@given(st.text(st.characters(categories=["Lu", "Ll", "Lt"]), max_size=20))
def test_capitals_have_the_vector_of_small_letters(text: str) -> None:
    assume(text.upper().casefold() == text.casefold())
    assert of(prompt=text).text == of(prompt=text.upper()).text


@given(words, st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_number_is_never_blanked_out(word: str, a: int, b: int) -> None:
    assume(a != b)
    one, other = (of(prompt=f"{word} {n}") for n in (a, b))
    assert one.response != other.response
    assert one.text != other.text


@given(words, words, words)
def test_a_name_is_never_blanked_out(before: str, a: str, b: str) -> None:
    assume(embedding_text(a) != embedding_text(b))
    one, other = (of(prompt=f"{before} {name}") for name in (a, b))
    assert one.response != other.response
    assert one.text != other.text


@given(st.integers(600, 3000), words, words)
def test_long_texts_that_share_their_end_or_beginning_are_not_one(n: int, a: str, b: str) -> None:
    assume(embedding_text(a) != embedding_text(b))
    shared = "word " * n
    for one, other in ((f"{a} {shared}", f"{b} {shared}"), (shared + a, shared + b)):
        assert of(prompt=one).text != of(prompt=other).text
        assert of(prompt=one).response != of(prompt=other).response
        assert of(system_prompt=one).context != of(system_prompt=other).context
