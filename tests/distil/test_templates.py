"""Templates of prompts and heads; and that no answer's key ever comes from one."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples.texts import table
from tests.distil.snippets import GO, JAVASCRIPT, OTHER, PYTHON, SAME, SQL, Change
from warmup_lib.distil.templates import head_digest, template
from warmup_lib.distil.volatile import Head
from warmup_lib.keys import Keys, Request, canonical_text
from warmup_lib.tables import TABLES

KEYS = Keys(b"a secret for the tests of distil")
TAGS = {"python": "py", "javascript": "js", "go": "golang", "sql": "", "java": "java"}
DATES = {"en": "3 May", "de": "14. März", "zh": "3月5日", "ar": "١٥ مارس"}  # noqa: RUF001
ASKED = {
    "en": "Why is this slow? It has to be done by {when} for {name}.\n```{tag}\n{code}\n```",
    "de": "Warum ist das so langsam? Bis {when} braucht es {name}.\n```{tag}\n{code}```",
    "zh": "为什么这段代码很慢?要在{when}之前完成。\n```{tag}\n{code}\n```\n谢谢",
    "ar": "لماذا هذا الكود بطيء؟ يجب أن ينتهي قبل {when}\n```{tag}\n{code}\n```",
}


def name_of(change: Change) -> str:
    return f"{change.language}-{change.name}"


def asked(language: str, tag: str, code: str, when: str = "2026-03-14", name: str = "") -> str:
    name = name or "Anna Schmidt"
    return ASKED[language].format(when=when, name=name, tag=tag, code=code)


@pytest.mark.parametrize("language", ASKED)
@pytest.mark.parametrize("change", SAME, ids=name_of)
def test_the_same_question_on_code_written_anew_has_the_same_template(
    change: Change, language: str
) -> None:
    one = template(asked(language, TAGS[change.language], change.code))
    other = asked(language, "", change.changed, DATES[language], "Mary Ann Lee")
    assert template(other.replace("\n", "\r\n")) == one
    assert (one.blocks, one.unparsed) == (1, 0)


@pytest.mark.parametrize("language", ASKED)
@pytest.mark.parametrize("change", OTHER, ids=name_of)
def test_a_question_on_code_with_another_operator_or_branch_has_another(
    change: Change, language: str
) -> None:
    texts = [asked(language, TAGS[change.language], c) for c in (change.code, change.changed)]
    assert template(texts[0]).digest != template(texts[1]).digest


def test_a_template_by_hand() -> None:
    found = template("Fix this for Anna Schmidt, by 3 May:\n```py\nx = 1 + y  # sum\n```\nThanks!")
    assert found.text == (
        "fix this for □ by □\n```python\n"
        "(module (assignment $ = (binary_operator # + $)))\n```\nthanks"
    )
    assert re.fullmatch("[0-9a-f]{32}", found.digest)


def test_code_with_errors_says_so_in_the_template() -> None:
    found = template("Fix:\n```python\ndef f(a:\n    return a + 1\n```")
    assert (found.blocks, found.unparsed) == (1, 1)
    assert "```python, not parsed\n" in found.text
    assert found != template("Fix:\n```python\ndef f(a):\n    return a + 1\n```")


@pytest.mark.parametrize("code", [PYTHON, JAVASCRIPT, GO, SQL], ids=["python", "js", "go", "sql"])
def test_code_without_marks_is_told_from_the_sentences_around_it(code: str) -> None:
    marked = template(f"Why does this fail?\n```\n{code}\n```\nThanks")
    assert template(f"Why does this fail?\n{code}\nThanks") == marked
    assert marked.blocks == 1


def test_one_statement_of_sql_is_code_and_a_sentence_like_it_is_not() -> None:
    one, other = "SELECT a, b FROM t WHERE id = 5", "select x, y from orders where key = 'q'"
    assert template(one) == template(other)
    assert template(one).blocks == 1
    assert template("Select the best from these options").blocks == 0


@pytest.mark.parametrize(
    "text",
    [
        "Dear team;\nplease pay 20 euro;\nbye",
        "Hello!\n\n- first: the parcel is late\n- second: nobody answers\n",
        "A list:\n  with an indented line\nand the rest (as always)",
        "```\n2026-03-14 10:20:30 could not open /var/log/x.log\n```",
    ],
)
def test_other_text_of_several_lines_is_no_code(text: str) -> None:
    assert template(text).blocks == 0


def test_a_block_that_is_not_closed_runs_to_the_end() -> None:
    assert template("Fix:\n```py\nx = 1") == template("Fix:\n```python\ny = 2\n```")


def filled(snippet: str, number: int) -> str:
    """Return a snippet of the sample log as its `number`-th asker sends it."""
    names: dict[str, list[str]] = table("snippets")["names"]
    return re.sub("<<(.+?)>>", lambda m: str(names[m[1]][number % len(names[m[1]])]), snippet)


@pytest.mark.parametrize("language", ["python", "javascript", "go"])
def test_the_sample_logs_snippets_have_one_template_each_whatever_fills_them(language: str) -> None:
    snippets = [snippet["text"] for snippet in table("snippets")[language]]
    found = [{template(filled(snippet, n)) for n in range(5)} for snippet in snippets]
    assert all(len(same) == 1 for same in found)
    assert len(set.union(*found)) == len(snippets)
    assert not any(one.unparsed for one in set.union(*found))


SLOTS = st.fixed_dictionaries(
    {
        "order": st.integers(0, 10**9).map(str),
        "day": st.dates().map(str),
        "name": st.sampled_from(["Anna Schmidt", "Jan Meyer", "Ana Sofia Ruiz"]),
        "variable": st.sampled_from(["rows", "x", "monthly_total"]),
        "literal": st.one_of(st.integers(0, 99).map(str), st.sampled_from(["'a'", "None"])),
    }
)
FORM = (
    "Where is order {order} of {day} for {name}?\n"
    "```python\nfor row in {variable}:\n    print(row + {literal})\n```"
)


@given(SLOTS, SLOTS)
def test_prompts_of_one_template_never_share_an_answer(
    a: dict[str, str], b: dict[str, str]
) -> None:
    one, other = FORM.format(**a), FORM.format(**b)
    assert template(one).digest == template(other).digest
    first, second = (KEYS.identity(Request("acme", "m", text)) for text in (one, other))
    keys = {KEYS.key("responses", "acme", i.response, model="m") for i in (first, second)}
    assert len(keys) == len({one, other})
    assert (first.response == second.response) == (one == other)
    assert template(one).digest not in str((first, second, keys))


@given(st.text(max_size=40), st.text(max_size=40))
def test_an_answers_identity_follows_the_canonical_text_whatever_the_template(
    a: str, b: str
) -> None:
    first, second = (KEYS.identity(Request("acme", "m", text)).response for text in (a, b))
    assert (first == second) == (canonical_text(a) == canonical_text(b))
    if first == second:
        assert template(a) == template(b)


def test_keys_are_built_without_templates() -> None:
    rooms = "warmup_lib.keys, warmup_lib.layers.registry, warmup_lib.targets.open"
    code = f"import sys, {rooms}; sys.exit('warmup_lib.distil.templates' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_tables_of_demand_know_templates() -> None:
    holders = {n for n, table in TABLES.items() if "template_digest" in table.schema.names}
    assert holders == {"prompts", "heads"}


def head(system_prompt: str, tools: str = "") -> Head:
    return Head("acme", "d", system_prompt, tools)


def test_heads_that_differ_in_moments_and_ids_have_one_template() -> None:
    same = {
        head_digest(head("You help. It is 10:20 on 2026-03-14.", '[{"id":"req_8f3a2b1c9d"}]')),
        head_digest(head("You help. It is 11:45 on 2025-01-01.", '[{"id":"req_0a1b2c3d4e"}]')),
    }
    assert len(same) == 1
    for other in (
        head("You help. It is 10:20 on 2026-03-14."),
        head("You are brief. It is 10:20 on 2026-03-14.", '[{"id":"req_8f3a2b1c9d"}]'),
        head("Answer in 20 words."),
        head("Answer in 50 words."),
        head("Answer in 50 words.", "[]"),
        head("Answer in 50 words.[]"),
    ):
        assert head_digest(other) not in same
        same.add(head_digest(other))


@pytest.mark.realdata
def test_real_questions_hold_no_code_and_keep_their_meaning_apart(real_data: Path) -> None:
    with (real_data / "banking77" / "train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[::5]
    found: dict[str, set[str]] = {}
    for row in rows:
        one = template(row["text"])
        assert one.blocks == 0, row
        found.setdefault(one.text, set()).add(row["category"])
    alike = [texts for texts in found.values() if len(texts) > 1]
    assert len(alike) <= 0.002 * len(found)
    with (real_data / "xsid" / "xsid_valid_6lang.tsv").open(encoding="utf-8", newline="") as file:
        said = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    assert not any(template(text).blocks for text in said)


@pytest.mark.realdata
def test_real_code_blocks_of_documents_are_parsed(real_data: Path) -> None:
    blocks = parsed = 0
    for page in (real_data / "docs_fastapi" / "en").rglob("*.md"):
        for block in re.findall(r"```[Pp]y.*?```", page.read_text(encoding="utf-8"), re.DOTALL):
            found = template(block)
            blocks += found.blocks
            parsed += found.blocks - found.unparsed
    assert blocks > 40
    assert parsed >= 0.9 * blocks
