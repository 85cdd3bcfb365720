"""The folder source: real questions, system prompts and pages from the folder WARMUP_DATA names.

Arrivals, popularity, sessions and serving are those of the shipped source; only the texts differ.
Nothing of the folder is kept in this project.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samples import texts
from samples.pool import Prompt

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from samples.texts import Tenant

_HEADING = re.compile(r"^#+ (.+?) \{ #[\w-]+ \}\s*$", re.M)
_TELLING = re.compile(r"@|https?:|\d{5}")
_CHUNK_LIMIT = 2_000
"""Characters of a documentation chunk that are kept."""


@dataclass(frozen=True)
class Question:
    """One real question with its label and, for documentation, what answers it."""

    text: str
    locale: str
    label: str
    chunk_ids: tuple[str, ...] = ()


class Folder:
    """Texts of the data folder, see its README for their sources and licences."""

    name = "folder"

    def __init__(self, data: Path) -> None:
        self._data = data

    def tenants(self) -> Sequence[Tenant]:
        """Return the five tenants, their policies replaced by real system prompts."""
        prompts = iter(self._system_prompts())
        return [self._tenant(name, prompts) for name in texts.TENANTS]

    def pool(self, tenant: Tenant, size: int, rng: np.random.Generator) -> list[Prompt]:
        """Return up to `size` distinct questions: the first of each label and language leads."""
        questions = {q.text: q for q in self._questions(tenant.name)}
        first: dict[tuple[str, str], str] = {}
        for question in questions.values():
            first.setdefault((question.locale, question.label), question.text)
        leads = set(first.values())
        others = [q for q in questions.values() if q.text not in leads]
        mixed = [others[i] for i in rng.permutation(len(others))]
        leading = [questions[text] for text in first.values()]
        leading = [leading[i] for i in rng.permutation(len(leading))]
        ordered = [*leading, *mixed][:size]
        return [_prompt(q, button=q.text in leads) for q in ordered]

    def documents(self) -> Mapping[str, Iterable[tuple[str, list[str]]]]:
        """Return the documentation pages of the tenant that asks about them."""
        return {"codeforge": self._documents()}

    def _documents(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the pages, a chunk a heading."""
        for page, _, _, text in self._pages():
            starts = [m.start() for m in _HEADING.finditer(text)]
            ends = [*starts[1:], len(text)]
            yield page, [text[a:b][:_CHUNK_LIMIT] for a, b in zip(starts, ends, strict=True)]

    def _tenant(self, name: str, prompts: Iterator[str]) -> Tenant:
        rules = texts.table("folder")[name]
        policy = [next(prompts)]
        while sum(map(len, policy)) < rules["head_length"]:
            policy.append(next(prompts))
        shipped = texts.tenant(name)
        labels = sorted({q.label for q in self._questions(name)})
        return replace(
            shipped,
            base="\n\n".join(policy),
            release=shipped.release
            and {**shipped.release, "old": policy[-1], "new": next(prompts)},
            locales=rules["locales"],
            intents={label: _intent(rules["rules"], label) for label in labels},
        )

    def _questions(self, tenant: str) -> list[Question]:
        rules = texts.table("folder")[tenant]
        read = {
            "banking77": self._banking,
            "xsid": self._xsid,
            "docs_fastapi": self._headings,
        }[rules["data"]]
        wanted = re.compile(rules.get("labels", ""))
        return [q for q in read() if q.locale in rules["locales"] and wanted.search(q.label)]

    def _banking(self) -> Iterator[Question]:
        for part in ("train", "test"):
            for row in _rows(self._data / "banking77" / f"{part}.csv", ","):
                yield Question(row["text"].strip(), "en", row["category"])

    def _xsid(self) -> Iterator[Question]:
        for row in _rows(self._data / "xsid" / "xsid_valid_6lang.tsv", "\t"):
            yield Question(row["text"].strip(), row["lang"], row["intent"])

    def _headings(self) -> Iterator[Question]:
        for page, locale, label, text in self._pages():
            for n, match in enumerate(_HEADING.finditer(text), 1):
                chunk_ids = tuple(dict.fromkeys((f"{page}#{n}", f"{page}#1")))
                yield Question(match.group(1), locale, label, chunk_ids)

    def _pages(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (page name, language, section, text) in the order of names."""
        for locale in ("en", "zh"):
            root = self._data / "docs_fastapi" / locale / "docs"
            for path in sorted(root.rglob("*.md")):
                *section, name = path.relative_to(root).with_suffix("").parts
                page = "-".join([*section, name])
                text = path.read_text(encoding="utf-8")
                yield f"{page}.{locale}", locale, "/".join(section), text

    def _system_prompts(self) -> Iterator[str]:
        """Yield the prompts that hold no address, link or long number, which would be redacted."""
        for row in _rows(self._data / "prompts" / "system_prompts.csv", ","):
            if row["prompt"].isascii() and not _TELLING.search(row["prompt"]):
                yield row["prompt"].strip()


def _rows(path: Path, delimiter: str) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def _intent(rules: list[dict[str, str]], label: str) -> texts.Intent:
    rule = next(r for r in rules if re.search(r["match"], label))
    return texts.Intent(rule["area"], rule["season"], incident=bool(rule.get("incident")))


def _prompt(question: Question, *, button: bool) -> Prompt:
    book = texts.table("folder")
    words = re.sub(r"[_/]", " ", question.label)
    return Prompt(
        text=question.text,
        locale=question.locale,
        intent=question.label,
        answer=book["answers"][question.locale].format(label=words),
        follow=tuple((q, a) for q, a in book["follow"][question.locale]),
        chunk_ids=question.chunk_ids,
        button=button,
    )
