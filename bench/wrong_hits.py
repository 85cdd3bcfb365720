"""Counts wrong hits, and hits, on pairs of questions that ought to miss and that ought to hit.

    python -m bench.wrong_hits

Calibrates the threshold with `warmup threshold --pairs` on BANKING77's training questions, counts
on its test questions, and compares with a fixed threshold without a guard, which is how RedisVL's
`SemanticCache` decides. Reads BANKING77 from the folder that WARMUP_DATA names; writes
bench/reports/wrong_hits.md and wrong_hits.png.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.composed_pairs import KINDS, composed, reworded
from bench.encoder import machine, percent, table
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.guard import compatible
from warmup_lib.keys import Keys, canonical_text, embedding_text
from warmup_lib.lake import Lake
from warmup_lib.threshold.bounds import GRID, upper_limit
from warmup_lib.threshold.pairs import EVERYONE
from warmup_lib.threshold.stage import run

REPORT = Path(__file__).parent / "reports" / "wrong_hits.md"
DAY = "2026-01-01"
EACH = {"train": 2400, "test": 750}
"""Pairs of each of the four kinds that ought to miss; as many as all of them ought to hit."""

OTHER = "other label"
SAME = "same label"
REWORDED = "reworded"

Encode = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class Cases:
    """Pairs of questions.

    Attributes:
        kinds: How each pair was made.
        texts: The two questions of each.
        similarity: (n,) their cosine.
        passed: (n,) the guard lets them pass.
    """

    kinds: np.ndarray
    texts: list[tuple[str, str]]
    similarity: np.ndarray
    passed: np.ndarray

    @property
    def ought(self) -> np.ndarray:
        """Which of them may share an answer."""
        return np.isin(self.kinds, (SAME, REWORDED))

    def counts(self, threshold: float, *, guarded: bool) -> tuple[int, int]:
        """Return right and wrong hits from a similarity on."""
        hit = self.similarity >= threshold
        hit = hit & self.passed if guarded else hit
        return int((hit & self.ought).sum()), int((hit & ~self.ought).sum())


@dataclass(frozen=True)
class Questions:
    """Distinct questions of one split, their labels and vectors."""

    texts: list[str]
    labels: np.ndarray
    vectors: np.ndarray


def questions(folder: Path, split: str, encode: Encode) -> Questions:
    """Read one split of BANKING77, with its capitals."""
    with (folder / "banking77" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        rows = {embedding_text(row["text"]): row for row in csv.DictReader(file)}
    texts = [canonical_text(row["text"]) for row in rows.values()]
    labels = np.array([row["category"] for row in rows.values()])
    return Questions(texts, labels, encode(list(rows)))


def cases(
    asked: Questions,
    stored: Questions,
    each: int,
    encode: Encode,
    *,
    kinds: Sequence[str] = KINDS,
) -> Cases:
    """Return pairs for one split of questions: what ought to miss, and as many that ought to hit.

    *Other label*: a question and the nearest stored one with another label. *Same label*: one and
    the nearest stored one with its own. The questions are drawn by the hash of their text. Without
    composed kinds the pairs are of labels alone. A question that is stored as it is asks nothing.
    """
    known = set() if stored is asked else set(map(embedding_text, stored.texts))
    new = [i for i, text in enumerate(asked.texts) if embedding_text(text) not in known]
    order = sorted(new, key=lambda i: _drawn(asked.texts[i]))
    made = [(OTHER, *pair) for pair in _nearest(asked, stored, order[:each], same=False)]
    for kind in kinds:
        found = [(kind, *two) for i in order if (two := composed(kind, asked.texts[i]))]
        made += found[:each]
    half = len(made) // 2 if kinds else len(made)
    made += [(REWORDED, *reworded(asked.texts[i])) for i in order[: len(made) - half]]
    made += [(SAME, *pair) for pair in _nearest(asked, stored, order[:half], same=True)]
    texts = [(a, b) for _, a, b in made]
    a_side, b_side = (encode([embedding_text(pair[side]) for pair in texts]) for side in (0, 1))
    return Cases(
        np.array([kind for kind, _, _ in made]),
        texts,
        np.sum(a_side * b_side, axis=1),
        np.array([compatible(a, b) for a, b in texts]),
    )


def calibrated(train: Cases, config: Config, folder: Path) -> float:
    """Return the threshold that `warmup threshold --pairs` finds on some pairs."""
    file = folder / "pairs.jsonl"
    rows = zip(train.texts, train.ought, strict=True)
    file.write_text(
        "".join(json.dumps({"a": a, "b": b, "same": bool(s)}) + "\n" for (a, b), s in rows),
        encoding="utf-8",
    )
    lake = Lake(str(folder / "lake"))
    report = run(lake, DAY, config, Keys(b"the secret of a bench"), pairs=file)
    return float(report.facts["tenants"][EVERYONE]["threshold"])


def fixed(train: Cases, error: float) -> float:
    """Return the lowest threshold without a guard that has at most this error on some pairs."""
    kept = 1.0
    for threshold in (round(0.999 - 0.001 * step, 3) for step in range(300)):
        right, wrong = train.counts(threshold, guarded=False)
        if right + wrong and wrong / (right + wrong) <= error:
            kept = threshold
    return kept


def share(right: int, wrong: int) -> float:
    """Return wrong hits / hits; 0 where nothing hits."""
    return wrong / max(1, right + wrong)


def _nearest(
    asked: Questions, stored: Questions, rows: Sequence[int], *, same: bool
) -> list[tuple[str, str]]:
    pairs = []
    for start in range(0, len(rows), 1024):
        part = list(rows[start : start + 1024])
        cosine = asked.vectors[part] @ stored.vectors.T
        alike = asked.labels[part][:, None] == stored.labels[None, :]
        cosine[alike != same] = -1
        if stored is asked:
            cosine[np.arange(len(part)), part] = -1
        nearest = cosine.argmax(axis=1)
        pairs += [(asked.texts[i], stored.texts[j]) for i, j in zip(part, nearest, strict=True)]
    return pairs


def _drawn(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- the report --------------------------------------------------------------------------------


def sections(folder: Path) -> list[str]:
    """Return the report's parts, and draw the picture."""
    config = Config()
    encode = open_encoder(config).encode
    read = {split: questions(folder, split, encode) for split in EACH}
    stored = read["train"]
    made = {split: cases(asked, stored, EACH[split], encode) for split, asked in read.items()}
    with tempfile.TemporaryDirectory() as empty:
        ours = calibrated(made["train"], config, Path(empty))
    error = share(*made["train"].counts(ours, guarded=True))
    bound, sure = config.threshold.bound, config.threshold.confidence
    rivals = {
        "fixed, no guard, tuned to our error": fixed(made["train"], error),
        "fixed, no guard, tuned to 1 %": fixed(made["train"], bound),
        "fixed, no guard, at encoder.threshold": config.encoder.threshold,
    }
    test = made["test"]
    _draw(test, ours)
    lines = [_line("calibrated, with the guard", test, ours, guarded=True, sure=sure)]
    lines += [_line(name, test, at, guarded=False, sure=sure) for name, at in rivals.items()]
    head = ["cache", "threshold", "hits", "wrong", "wrong / hits, %", "at most, %"]
    head.append("right hits / pairs that ought to hit, %")
    misses = int((~test.ought).sum())
    return [
        f"## {misses:,} pairs that ought to miss, {int(test.ought.sum()):,} that ought to hit\n\n"
        f"The threshold is calibrated by `warmup threshold --pairs` on {len(train_of(made)):,} "
        f"pairs of training questions, to at most {100 * bound:g} % wrong hits with "
        f"{100 * sure:g} % confidence, and counted here on pairs of test questions. *At most*: "
        f"upper limit at {100 * sure:g} %. *No guard*: a cosine alone decides, as in RedisVL's "
        "`SemanticCache.check`; its threshold is the lowest that has that error on the same "
        "training pairs, without any reserve, which favours it.",
        table(head, lines),
        "![right hits over wrong hits](wrong_hits.png)",
        "## What the pairs are\n\n"
        "- *other label*: a test question and the nearest training question with another of the "
        "77 labels; *same label*, what ought to hit: one and the nearest with its own label. So "
        "training questions are what a cache holds, and test questions ask it; the training pairs "
        "are made alike, of each training question and the nearest other. One label is not one "
        "answer, but BANKING77 tells no more.\n"
        "- *negated*, *number*, *entity* are composed (`bench/composed_pairs.py`): a test question "
        "and a copy with another negation, number or name, or two copies with different ones. "
        "Some read oddly; none may share an answer.\n"
        "- *reworded* is composed too: a test question and a copy with a greeting, a thank-you, a "
        "typo, a contraction, or in lower case without marks. Half of what ought to hit.",
        table(
            ["kind", "pairs", "median cosine", "refused by the guard, %", "hits", "may hit"],
            [_kind(kind, test, ours) for kind in (OTHER, *KINDS, SAME, REWORDED)],
        ),
        *_harder(read["test"], stored, encode, ours),
    ]


def train_of(made: dict[str, Cases]) -> list[tuple[str, str]]:
    """Return the pairs that were calibrated on."""
    return made["train"].texts


def _line(name: str, test: Cases, at: float, *, guarded: bool, sure: float) -> list[object]:
    right, wrong = test.counts(at, guarded=guarded)
    limit = percent(upper_limit(wrong, right + wrong, sure)) if right + wrong else "-"
    found = f"{100 * share(right, wrong):.2f}"
    ratio = percent(right / test.ought.sum())
    return [name, f"{at:.3f}", right + wrong, wrong, found, limit, ratio]


def _kind(kind: str, test: Cases, at: float) -> list[object]:
    ours = test.kinds == kind
    hits = int((ours & test.passed & (test.similarity >= at)).sum())
    may = "yes" if kind in (SAME, REWORDED) else "no"
    refused = percent(1 - test.passed[ours].mean())
    return [kind, int(ours.sum()), f"{np.median(test.similarity[ours]):.3f}", refused, hits, may]


def _harder(asked: Questions, stored: Questions, encode: Encode, at: float) -> list[str]:
    """Return what stays wrong where every pair is the hardest one: the labels' own limit."""
    hardest = cases(asked, stored, len(asked.texts), encode, kinds=())
    rows = []
    for threshold in (at, 0.96, 0.98):
        right, wrong = hardest.counts(threshold, guarded=True)
        rows.append(
            [f"{threshold:.3f}", right, wrong, percent(share(right, wrong))],
        )
    left = hardest.passed & ~hardest.ought & (hardest.similarity >= at)
    nearest = sorted(np.flatnonzero(left), key=lambda i: -hardest.similarity[i])[:6]
    return [
        "## The hardest pairs alone\n\nEach test question with the nearest of another label, and "
        "with the nearest of its own. Here no threshold keeps 1 %: what is nearest of all differs "
        "in its label and hardly in what is asked, so that calibrating on such pairs ends in "
        "*equal questions only*, and says so.",
        table(["threshold", "right", "wrong", "wrong / hits, %"], rows),
        table(
            ["cosine", "one", "other"],
            [[f"{hardest.similarity[i]:.3f}", *hardest.texts[i]] for i in nearest],
        ),
    ]


def _draw(test: Cases, at: float) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, guarded in (("with the guard", True), ("cosine alone", False)):
        points = [test.counts(t, guarded=guarded) for t in GRID]
        axes.plot(
            [100 * share(*p) for p in points],
            [100 * right / test.ought.sum() for right, _ in points],
            label=name,
            marker=".",
        )
    right, wrong = test.counts(at, guarded=True)
    ours = (100 * share(right, wrong), 100 * right / test.ought.sum())
    axes.plot(*ours, "o", color="black", label=f"calibrated: {at:.3f}")
    axes.axvline(1, color="grey", linestyle=":", label="bound")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("wrong hits, % of hits")
    axes.set_ylabel("right hits, % of the pairs that ought to hit")
    axes.legend()
    figure.tight_layout()
    figure.savefig(REPORT.with_suffix(".png"), dpi=110)
    plt.close(figure)


def main() -> None:
    """Write the report."""
    folder = os.environ.get("WARMUP_DATA")
    if not folder or not Path(folder, "banking77").is_dir():
        print("bench/wrong_hits.py: skipped, WARMUP_DATA names no folder with BANKING77")
        return
    made = sections(Path(folder))
    title = "# Wrong hits at a calibrated threshold\n\nMade by `python -m bench.wrong_hits`."
    REPORT.write_text("\n\n".join([title, machine(), *made]) + "\n", encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
