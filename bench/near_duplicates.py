"""Compares near duplicates found by hashing with those found by comparing all pairs.

Reads BANKING77, xSID and the Berlin search terms from the folder that WARMUP_DATA names, writes
bench/reports/near_duplicates.md.
"""

from __future__ import annotations

import csv
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from warmup_lib.distil.near import THRESHOLD, near_pairs, shingles
from warmup_lib.guard import signature
from warmup_lib.keys import embedding_text

REPORT = Path(__file__).parent / "reports" / "near_duplicates.md"
LOWEST = 0.7
Pairs = dict[tuple[int, int], float]


def all_pairs(texts: Sequence[str]) -> Pairs:
    """Return the Jaccard similarity of every pair that reaches `LOWEST`."""
    held = CountVectorizer(analyzer=shingles, binary=True).fit_transform(texts).astype(np.float32)
    size = np.asarray(held.sum(axis=1)).ravel()
    found: Pairs = {}
    for start in range(0, len(texts), 500):
        both = (held[start : start + 500] @ held.T).tocoo()
        left, right = both.row + start, both.col
        similarity = both.data / (size[left] + size[right] - both.data)
        keep = (left < right) & (similarity >= LOWEST - 1e-6)
        pairs = zip(left[keep].tolist(), right[keep].tolist(), strict=True)
        found.update(zip(pairs, similarity[keep].tolist(), strict=True))
    return found


def texts_of(folder: Path) -> dict[str, dict[str, str]]:
    """Return, for each set, its distinct canonical texts with their intents ('' where none)."""
    found: dict[str, dict[str, str]] = {"BANKING77": {}}
    for split in ("train", "test"):
        with (folder / "banking77" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found["BANKING77"][embedding_text(row["text"])] = row["category"]
    for name, path, column in (
        ("xSID, six languages", folder / "xsid" / "xsid_valid_6lang.tsv", "text"),
        (
            "Berlin search terms",
            folder / "berlin_search" / "searchterms_2019-02_2020-12.tsv",
            "term",
        ),
    ):
        with path.open(encoding="utf-8") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            found[name] = {embedding_text(row[column]): "" for row in rows}
    return found


def sections(folder: Path) -> Iterator[str]:
    """Yield the report's parts."""
    yield "| set | texts | near pairs | found | false | hashing s | all pairs s |"
    yield "|---|---|---|---|---|---|---|"
    exact: dict[str, Pairs] = {}
    sets = texts_of(folder)
    for name, texts in sets.items():
        listed = list(texts)
        began = time.process_time()
        exact[name] = all_pairs(listed)
        middle = time.process_time()
        found = set(near_pairs(listed))
        ended = time.process_time()
        near = {pair for pair, similarity in exact[name].items() if similarity >= THRESHOLD - 1e-6}
        yield (
            f"| {name} | {len(listed):,} | {len(near)} | {len(found & near)} | {len(found - near)} "
            f"| {ended - middle:.1f} | {middle - began:.1f} |"
        )
    yield ""
    yield "Pairs of BANKING77 that have one intent, and the same after the guard:"
    yield ""
    yield "| from Jaccard | pairs | one intent % | guarded pairs | one intent % |"
    yield "|---|---|---|---|---|"
    texts, intents = map(list, zip(*sets["BANKING77"].items(), strict=True))
    for threshold in (0.70, 0.75, 0.80, 0.85, 0.90):
        pairs = [pair for pair, s in exact["BANKING77"].items() if s >= threshold - 1e-6]
        cells = []
        for kept in (pairs, [p for p in pairs if signature(texts[p[0]]) == signature(texts[p[1]])]):
            same = np.mean([intents[a] == intents[b] for a, b in kept])
            cells += [str(len(kept)), f"{100 * same:.1f}"]
        yield f"| {threshold:.2f} | {' | '.join(cells)} |"


def main() -> None:
    """Write the report."""
    if not (data := os.environ.get("WARMUP_DATA")):
        print("bench/near_duplicates.py: skipped, WARMUP_DATA names no folder with the data sets")
        return
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    head = (
        "# Near duplicates\n\nMade by `bench/near_duplicates.py`. Near: Jaccard similarity of the "
        f"character shingles from {THRESHOLD} on. Seconds are of CPU time.\n\n"
        f"Machine: {platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
        f"{platform.python_version()}. Commit {commit}.\n"
    )
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join([head, *sections(Path(data)), ""]), encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
