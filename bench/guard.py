"""Measures what the guard refuses, right and wrong, and how fast it is, on real questions.

Reads BANKING77 and xSID from the folder that WARMUP_DATA names, writes bench/reports/guard.md.
Usage: `python -m bench.guard`.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from bench.encoder import machine, percent, table

sys.path.insert(0, str(Path(__file__).parents[1]))

from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib import guard
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.keys import canonical_text, embedding_text

REPORT = Path(__file__).parent / "reports" / "guard.md"
THRESHOLDS = (0.85, 0.90, 0.92)
LANGUAGES = ("en", "de", "it", "zh", "ja")
BEFORE = "ae981f3"
"""The last commit whose guard knew numbers and negations only."""

Signature = Callable[[str], str]


@dataclass(frozen=True)
class Asked:
    """Distinct questions as written, their intents and vectors."""

    texts: list[str]
    intents: np.ndarray
    vectors: np.ndarray


def banking(folder: Path, split: str, encode: Callable[[list[str]], np.ndarray]) -> Asked:
    """Read one split of BANKING77, with its capitals."""
    with (folder / "banking77" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        rows = {embedding_text(r["text"]): r for r in csv.DictReader(file)}
    texts = [canonical_text(row["text"]) for row in rows.values()]
    intents = np.array([row["category"] for row in rows.values()])
    return Asked(texts, intents, encode(list(rows)))


def xsid(folder: Path, language: str, encode: Callable[[list[str]], np.ndarray]) -> Asked:
    """Read one language of xSID, with its capitals."""
    with (folder / "xsid" / "xsid_valid_6lang.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = {embedding_text(r["text"]): r for r in rows if r["lang"] == language}
    texts = [canonical_text(row["text"]) for row in found.values()]
    return Asked(texts, np.array([r["intent"] for r in found.values()]), encode(list(found)))


def shipped(encode: Callable[[list[str]], np.ndarray]) -> dict[str, Asked]:
    """Return the distinct questions of a small sample log by tenant, model and system prompt."""
    found: dict[tuple[str, ...], dict[str, tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), Shipped(), days=2, scale=0.5)
        for file in sorted(Path(folder).glob("requests-*.jsonl.gz")):
            for line in gzip.decompress(file.read_bytes()).splitlines():
                row = json.loads(line)
                place = tuple(str(row.get(n)) for n in ("tenant", "model", "system_prompt"))
                if row.get("intent") and not row.get("messages"):
                    text = canonical_text(row["prompt"])
                    found.setdefault(place, {})[embedding_text(text)] = (text, row["intent"])
    made = {}
    for place, rows in sorted(found.items()):
        texts, intents = zip(*rows.values(), strict=True)
        made["\0".join(place)] = Asked(list(texts), np.array(intents), encode(list(rows)))
    return made


def guard_of(commit: str) -> Signature:
    """Return the signature of an older commit, read from the repository."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:warmup_lib/guard.py"], capture_output=True, text=True, check=True
    )
    module = ModuleType("guard_before")
    exec(compile(shown.stdout, "guard.py", "exec"), module.__dict__)
    made: Signature = module.signature
    return made


def parts(wanted: Sequence[int], marks: str) -> Signature:
    """Return a signature of some of its fields, and of the marks that begin with a sign."""

    def some(text: str) -> str:
        fields = guard.signature(text).split("|", 3)
        kept = [mark for mark in fields[3].split() if mark[0] in marks]
        return "|".join([*(fields[n] for n in wanted), *kept])

    return some


# -- served as an application would ------------------------------------------------------------


def served(asked: Asked, stored: Asked, sign: Signature, at: float) -> tuple[int, int]:
    """Return how many questions the nearest allowed other one answers, right and wrong."""
    numbers: dict[str, int] = {}
    ours, theirs = (
        np.array([numbers.setdefault(sign(text), len(numbers)) for text in group.texts])
        for group in (asked, stored)
    )
    right = wrong = 0
    for start in range(0, len(ours), 1024):
        rows = slice(start, start + 1024)
        cosine = asked.vectors[rows] @ stored.vectors.T
        cosine[ours[rows, None] != theirs[None, :]] = -1
        if asked is stored:
            here = np.arange(len(cosine))
            cosine[here, here + start] = -1
        hit, by = cosine.max(axis=1) >= at, cosine.argmax(axis=1)
        same = asked.intents[rows] == stored.intents[by]
        right += int((hit & same).sum())
        wrong += int((hit & ~same).sum())
    return right, wrong


def rows(
    asked: Asked, stored: Asked, signs: Mapping[str, Signature], at: float
) -> list[list[object]]:
    """Return a row a guard: served, wrong among them, and what the guard took from each."""
    made: list[list[object]] = []
    free = served(asked, stored, lambda _: "", at)
    for name, sign in signs.items():
        right, wrong = served(asked, stored, sign, at)
        made.append(
            [
                name,
                percent((right + wrong) / len(asked.texts)),
                f"{wrong} ({percent(wrong / max(1, right + wrong))})",
                f"{right} ({percent(right / free[0] - 1)})",
            ]
        )
    return made


def pairs(group: Asked, signs: Mapping[str, Signature], at: float) -> Iterator[list[object]]:
    """Yield a row a guard: how many of the pairs that are similar enough it refuses."""
    found = []
    for start in range(0, len(group.texts), 1024):
        left, right = np.nonzero(group.vectors[start : start + 1024] @ group.vectors.T >= at)
        found += [(a + start, b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    close = [(a, b) for a, b in found if a < b]
    same = np.array([group.intents[a] == group.intents[b] for a, b in close])
    for name, sign in signs.items():
        signed = [sign(text) for text in group.texts]
        refused = np.array([signed[a] != signed[b] for a, b in close])
        yield [
            name,
            f"{(refused & ~same).sum():,} of {(~same).sum():,} ({percent(refused[~same].mean())})",
            f"{(refused & same).sum():,} of {same.sum():,} ({percent(refused[same].mean())})",
            percent((~same & ~refused).sum() / (~refused).sum()),
        ]


# -- refused examples and speed ----------------------------------------------------------------


def examples(groups: Mapping[str, Asked], before: Signature, at: float) -> Iterator[list[object]]:
    """Yield xSID pairs, the most similar first, that only the new guard refuses."""
    for language, group in groups.items():
        cosine = np.triu(group.vectors @ group.vectors.T, 1)
        order = np.argsort(-cosine, axis=None)[: int((cosine >= at).sum())]
        shown = 0
        for a, b in zip(*np.unravel_index(order, cosine.shape), strict=True):
            one, other = group.texts[a], group.texts[b]
            if before(one) == before(other) and not guard.compatible(one, other) and shown < 3:
                shown += 1
                same = "same" if group.intents[a] == group.intents[b] else "other"
                yield [language, f"{cosine[a, b]:.3f}", one, other, same]


def speed(sign: Signature, texts: Sequence[str]) -> str:
    """Return texts a CPU second on one core, the best of three."""
    best = 0.0
    for _ in range(3):
        begun = time.process_time()
        for text in texts:
            sign(text)
        best = max(best, len(texts) / (time.process_time() - begun))
    return f"{best:,.0f}"


def sections(folder: Path) -> Iterator[str]:
    """Yield the report's parts."""
    encoder = open_encoder(Config())
    train, test = (banking(folder, split, encoder.encode) for split in ("train", "test"))
    before = guard_of(BEFORE)
    all_signs: dict[str, Signature] = {
        "none": lambda _: "",
        "before (numbers, negations)": before,
        "now": guard.signature,
    }
    alone = {
        "numbers and units alone": parts((0,), ""),
        "negations alone": parts((1, 2), ""),
        "opposites alone": parts((), "-"),
        "places, days, currencies, products, names alone": parts((), "@"),
        "codes and quotes alone": parts((), "="),
    }
    head = ["guard", "served, %", "wrong (% of served)", "right (% against no guard)"]
    yield (
        "## BANKING77: test questions answered by training questions\n\n"
        f"{len(test.texts):,} questions, {len(train.texts):,} stored, default encoder. *Wrong*: "
        "the stored question has another of the 77 intents. Many of these labels are a matter of "
        'taste ("How do I reset my PIN?" is `pin_blocked` and `change_pin`), so that not all that '
        "is called wrong could be told by anybody. The lists of words were written with an eye on "
        "these questions: on other data expect less."
    )
    for at in THRESHOLDS:
        print(f"threshold {at}", file=sys.stderr, flush=True)
        signs = all_signs | alone if at == THRESHOLDS[-1] else all_signs
        yield f"Cosine of at least {at}:"
        yield table(head, rows(test, train, signs, at))
    both = Asked(
        train.texts + test.texts,
        np.concatenate([train.intents, test.intents]),
        np.concatenate([train.vectors, test.vectors]),
    )
    yield "## BANKING77: all pairs that are similar enough"
    head = [
        "guard",
        "of another intent, refused (%)",
        "of one intent, refused (%)",
        "wrong left, %",
    ]
    for at in THRESHOLDS:
        yield f"Cosine of at least {at}:"
        yield table(head, list(pairs(both, all_signs, at)))
    yield (
        "## xSID: commands in five languages\n\nEach command answered by the nearest other one of "
        "its language, at 0.92. One intent (such as `weather/find`) holds many answers (today, "
        "tomorrow, Rome), so that most of what is refused here is refused rightly; the labels "
        "don't say so. Examples follow, the most similar first, and whether the intent is the same."
    )
    spoken = {}
    for language in LANGUAGES:
        spoken[language] = xsid(folder, language, encoder.encode)
    head = ["language", "commands", "served, no guard", "before", "now", "wrong, no guard"]
    head += ["before", "now"]
    found = []
    for language, group in spoken.items():
        each = [served(group, group, sign, 0.92) for sign in all_signs.values()]
        found.append([language, len(group.texts), *map(sum, each), *(wrong for _, wrong in each)])
    yield table(head, found)
    head = ["language", "cosine", "one", "other", "intent"]
    yield table(head, list(examples(spoken, before, 0.9)))
    yield (
        "## The shipped sample log, which is composed\n\nEach distinct question answered by the "
        "nearest other one of its tenant, model and system prompt. Right answers differ within an "
        "intent too (another city, another amount), which the labels don't tell."
    )
    groups = shipped(encoder.encode)
    made = []
    for name, sign in all_signs.items():
        each = np.array([served(group, group, sign, 0.92) for group in groups.values()])
        right, wrong = each.sum(axis=0)
        made.append([name, right + wrong, f"{wrong} ({percent(wrong / (right + wrong))})", right])
    yield table(["guard", "served", "wrong (% of served)", "right"], made)
    yield "## Speed\n\nSignatures a CPU second, one core."
    cjk = [text for language in ("zh", "ja") for text in spoken[language].texts] * 20
    yield table(
        ["texts", "characters", "before", "now"],
        [
            [
                name,
                f"{np.mean([len(t) for t in texts]):.0f}",
                speed(before, texts),
                speed(guard.signature, texts),
            ]
            for name, texts in (("BANKING77", train.texts), ("xSID zh and ja", cjk))
        ],
    )


def main() -> None:
    """Write the report."""
    folder = os.environ.get("WARMUP_DATA")
    if not folder or not Path(folder, "banking77").is_dir():
        print("bench/guard.py: skipped, WARMUP_DATA names no folder with BANKING77")
        return
    made = list(sections(Path(folder)))
    title = "# What the guard refuses\n\nMade by `bench/guard.py`."
    REPORT.write_text("\n\n".join([title, machine(), *made]) + "\n", encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
