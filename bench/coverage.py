"""Compares ways to choose what to warm, on real questions: docs/adr/0004-selection.md.

Reads BANKING77 from the folder that WARMUP_DATA names, writes bench/reports/coverage.md.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from bench.encoder import banking, machine, table
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.guard import signature
from warmup_lib.plan.coverage import Group, greedy
from warmup_lib.plan.points import lay_out
from warmup_lib.plan.selection import most_covering
from warmup_lib.stage import silent
from warmup_lib.tables import MICRO, PLAN

BUDGETS = (50, 100, 200, 1000)
SEED = 20260302
DRAWS = 5
REPORT = Path(__file__).parent / "reports" / "coverage.md"

Ints = np.ndarray
Chooser = Callable[["Log", int, float], Ints]


@dataclass(frozen=True)
class Split:
    """Distinct canonical questions with their intents, vectors and guard signatures."""

    texts: list[str]
    intents: np.ndarray
    vectors: np.ndarray
    guard: np.ndarray


@dataclass(frozen=True)
class Log:
    """History and later traffic: how often each question was asked."""

    history: Split
    asked: np.ndarray
    later: Split
    asked_later: np.ndarray


def splits(folder: Path) -> tuple[Split, Split]:
    """Return train and test with their vectors."""
    encoder = open_encoder(Config())
    made = []
    for name in ("train", "test"):
        read = banking(folder, name)
        guard = np.array([signature(text) for text in read.texts])
        made.append(Split(read.texts, read.intents, encoder.encode(read.texts), guard))
    return made[0], made[1]


def together(*parts: Split) -> Split:
    """Return several splits as one."""
    return Split(
        [text for part in parts for text in part.texts],
        np.concatenate([part.intents for part in parts]),
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.guard for part in parts]),
    )


def as_they_are(train: Split, test: Split) -> Log:
    """Every question was asked once."""
    ones = (np.ones(len(s.texts), dtype=np.int64) for s in (train, test))
    return Log(train, next(ones), test, next(ones))


def with_popularity(train: Split, test: Split, repeats: float, seed: int) -> Log:
    """Draw intents by Zipf's law with exponent 1, and questions of an intent by the same law.

    A share `repeats` of the later requests are questions of the history, as popular as there.
    """
    draw = np.random.default_rng(seed)
    order = draw.permutation(np.unique(train.intents))

    def popularity(split: Split) -> np.ndarray:
        weight = np.zeros(len(split.texts))
        for place, intent in enumerate(order):
            rows = draw.permutation(np.flatnonzero(split.intents == intent))
            law = 1 / np.arange(1, len(rows) + 1)
            weight[rows] = law / law.sum() / (place + 1)
        return weight / weight.sum()

    known, new = popularity(train), popularity(test)
    later = np.concatenate([repeats * known, (1 - repeats) * new])
    return Log(
        train,
        draw.multinomial(50_000, known),
        together(train, test),
        draw.multinomial(10_000, later),
    )


# -- ways to choose ----------------------------------------------------------------------------


class Held:
    """Vectors in memory, by text digest."""

    def __init__(self, vectors: Mapping[str, np.ndarray]) -> None:
        self._vectors = vectors

    def matrix(self, digests: Sequence[str]) -> np.ndarray:
        """Return the vectors as rows."""
        return np.stack([self._vectors[d] for d in digests])


def covering(asked: np.ndarray, split: Split, free: np.ndarray, budget: int, at: float) -> Ints:
    """Choose as the plan does: rows of `split` that may be chosen, by the heat they cover."""
    digests = [f"{row:06}" for row in range(len(split.texts))]
    same = ["x"] * len(digests)
    prompts = pa.table(
        {
            "tenant": same,
            "context_digest": same,
            "text_digest": digests,
            "response_digest": digests,
            "text": split.texts,
            "near_of": pa.nulls(len(digests), pa.string()),
            "heat_micro": pa.array(asked * MICRO, pa.int64()),
        }
    )
    rows = np.flatnonzero(free)
    candidates = pa.table({"tenant": ["x"] * len(rows), "key_digest": [digests[r] for r in rows]})
    points = lay_out(prompts, candidates, PLAN.empty())
    vectors = Held(dict(zip(digests, split.vectors, strict=True)))
    return rows[most_covering(points, vectors, at, budget, silent).rows]


def ours(log: Log, budget: int, at: float) -> Ints:
    """Weighted maximum coverage of the history."""
    return covering(log.asked, log.history, np.ones(len(log.asked), bool), budget, at)


def top_k(log: Log, budget: int, at: float) -> Ints:  # noqa: ARG001
    """Take the most frequent questions; ties in a fixed shuffle."""
    tie = np.random.default_rng(SEED).permutation(len(log.asked))
    return np.lexsort((tie, -log.asked))[:budget]


def largest_clusters(per_item: int) -> Chooser:
    """Cluster with k-means (`per_item` clusters an item) and take the largest clusters' medoids."""

    def choose(log: Log, budget: int, at: float) -> Ints:  # noqa: ARG001
        import faiss

        vectors, count = log.history.vectors, budget * per_item
        weights = log.asked.astype(np.float32)
        kmeans = faiss.Kmeans(
            vectors.shape[1],
            count,
            niter=20,
            seed=SEED,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=10**6,
        )
        kmeans.train(vectors, weights=weights)
        cosine = vectors @ kmeans.centroids.T
        cluster = cosine.argmax(axis=1)
        size = np.bincount(cluster, weights, minlength=count)
        closeness = np.where(weights > 0, cosine[np.arange(len(cluster)), cluster], -2)
        best = np.lexsort((-closeness, cluster))
        first = best[np.unique(cluster[best], return_index=True)[1]]
        return first[np.argsort(-size[cluster[first]], kind="stable")][:budget]

    return choose


def hindsight(log: Log, budget: int, at: float) -> Ints:
    """Choose from the history by the later traffic: what nobody could know."""
    both = together(log.history, log.later)
    asked = np.concatenate([np.zeros_like(log.asked), log.asked_later])
    free = np.arange(len(asked)) < len(log.asked)
    return covering(asked, both, free, budget, at)


def outcome(log: Log, chosen: Ints, at: float) -> tuple[float, float]:
    """Return the share of later requests served, and of these the share of another intent.

    A request is served by the most similar chosen question that the guard lets through.
    """
    cosine = log.later.vectors @ log.history.vectors[chosen].T
    cosine[log.later.guard[:, None] != log.history.guard[chosen][None, :]] = -1
    by = cosine.argmax(axis=1)
    served = cosine.max(axis=1) >= at
    wrong = served & (log.later.intents != log.history.intents[chosen][by])
    asked = log.asked_later
    return asked[served].sum() / asked.sum(), asked[wrong].sum() / max(1, asked[served].sum())


CHOOSERS: dict[str, Chooser] = {
    "maximum coverage (ours)": ours,
    "largest k-means clusters, K clusters": largest_clusters(1),
    "largest k-means clusters, 4K clusters": largest_clusters(4),
    "Top-K by frequency": top_k,
    "best in hindsight (greedy)": hindsight,
}


# -- against the optimum -----------------------------------------------------------------------


def optimum(near: np.ndarray, heat: np.ndarray, budget: int) -> float:
    """Return the most heat that `budget` rows can cover, by integer programming."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack

    count = len(heat)
    covers = hstack([csr_array(-near.astype(float)), eye_array(count)])
    found = milp(
        np.concatenate([np.zeros(count), -heat]),
        integrality=np.ones(2 * count),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(covers, ub=0),
            LinearConstraint(np.concatenate([np.ones(count), np.zeros(count)]), ub=budget),
        ],
        options={"mip_rel_gap": 0},
    )
    return float(-found.fun)


def against_optimum(log: Log, at: float) -> Iterator[list[object]]:
    """Yield rows: texts, budget, instances, mean and least share of the optimum."""
    draw = np.random.default_rng(SEED)
    for count, budget, instances in ((200, 10, 30), (400, 20, 20), (800, 40, 10)):
        shares = []
        for _ in range(instances):
            intents = draw.choice(np.unique(log.history.intents), 6, replace=False)
            pool = np.flatnonzero(np.isin(log.history.intents, intents))
            rows = np.sort(draw.choice(pool, min(count, len(pool)), replace=False))
            vectors, heat = log.history.vectors[rows], draw.zipf(1.6, len(rows)).clip(max=1000)
            limit = iter(range(budget))
            group = Group(vectors, heat, np.ones(len(rows), bool), np.arange(len(rows)))
            picks = greedy(
                group, at, lambda _row, _gain, limit=limit: next(limit, None) is not None
            )
            near = vectors.astype(float) @ vectors.T.astype(float) >= at - 1e-6
            shares.append(picks.gains.sum() / optimum(near, heat, budget))
        yield [count, budget, instances, f"{np.mean(shares):.4f}", f"{min(shares):.4f}"]


# -- scale -------------------------------------------------------------------------------------


def peak_mib() -> float:
    """Return the largest resident memory since the peak was last reset (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def one_group(vectors: np.ndarray, count: int, budget: int, at: float) -> list[object]:
    """Return seconds, CPU seconds and memory of one group of `count` texts.

    The texts are mixtures of two questions each, so that the spectrum is that of real vectors.
    """
    draw = np.random.default_rng(SEED)
    share = (0.2 + 0.6 * draw.random((count, 1))).astype(np.float32)
    mixed = (1 - share) * vectors[draw.integers(0, len(vectors), count)]
    mixed += share * vectors[draw.integers(0, len(vectors), count)]
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    heat = draw.zipf(1.5, count).clip(max=10_000) * MICRO
    # Making the texts took more memory than choosing does: the kernel's peak begins anew.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = peak_mib()
    wall, cpu = time.perf_counter(), time.process_time()
    limit = iter(range(budget))
    with threadpool_limits(1, user_api="blas"):
        picks = greedy(
            Group(mixed, heat, np.ones(count, bool), np.arange(count)),
            at,
            lambda _row, _gain: next(limit, None) is not None,
        )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    more = peak_mib() - before
    return [
        f"{count:,}", f"{budget:,}", f"{wall:.0f}", f"{cpu:.0f}", f"{mixed.nbytes / 2**20:,.0f}",
        f"{more:,.0f}", f"{int(picks.texts.sum()):,}",
    ]  # fmt: skip


def scale(vectors: np.ndarray, at: float) -> Iterator[list[object]]:
    """Yield a row a size, each measured in a process of its own."""
    for count in (25_000, 50_000, 100_000, 200_000):
        say(f"one group of {count}")
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            yield pool.apply(one_group, (vectors, count, 1000, at))


# -- report ------------------------------------------------------------------------------------


def say(what: str) -> None:
    """Show what is being measured."""
    print(what, file=sys.stderr, flush=True)


def compared(logs: Sequence[Log], at: float) -> str:
    """Return a table: share served by budget and way to choose, over several logs."""
    rows = []
    for name, choose in CHOOSERS.items():
        say(f"{name}, {len(logs)} logs")
        row: list[object] = [name]
        for budget in BUDGETS:
            found = np.array([outcome(log, choose(log, budget, at), at) for log in logs]) * 100
            served, wrong = found.mean(axis=0)
            spread = f"; {found[:, 0].min():.1f} to {found[:, 0].max():.1f}"
            row.append(f"{served:.1f} ({wrong:.1f}{spread if len(logs) > 1 else ''})")
        rows.append(row)
    return table(["chosen by", *(f"K = {k}" for k in BUDGETS)], rows)


def sections(folder: Path) -> Iterator[str]:
    """Yield the report's parts."""
    at = Config().encoder.threshold
    train, test = splits(folder)
    plain = as_they_are(train, test)
    yield (
        f"## Later traffic served, %\n\nHistory: the {len(train.texts):,} training questions of "
        f"BANKING77; later traffic: the {len(test.texts):,} test questions, none of which is in "
        f"the history. Served: cosine of at least {at} with a chosen question, and equal numbers "
        "and negations. In brackets: of these, the share answered from another intent; then the "
        "least and the most over the draws."
    )
    yield "### Every question asked once"
    yield compared([plain], at)
    for repeats in (0.0, 0.5):
        yield (
            f"### Composed popularity, {repeats:.0%} of the later requests repeat a known question"
            f"\n\nThe same questions, asked by Zipf's law (exponent 1 over the intents, the same "
            "over the questions of one intent): 50,000 requests of history, 10,000 later ones. "
            f"Mean of {DRAWS} draws, which differ much: one new question may be 4 % of all "
            "requests."
        )
        yield compared([with_popularity(train, test, repeats, SEED + n) for n in range(DRAWS)], at)
    say("against the optimum")
    yield (
        "## Greedy against the exact optimum\n\nQuestions of six intents with random heat (Zipf, "
        "1.6); the optimum by integer programming. The bound is 0.632."
    )
    head = ["texts", "K", "instances", "mean share of the optimum", "least"]
    yield table(head, list(against_optimum(plain, at)))
    yield (
        "## One large group\n\nAll texts in one tenant, context and guard signature. Memory is "
        "what the choosing adds to the vectors (peak)."
    )
    head = ["texts", "K", "seconds", "CPU seconds", "vectors MiB", "added MiB", "texts covered"]
    yield table(head, list(scale(train.vectors, at)))


def main() -> None:
    """Write the report."""
    folder = os.environ.get("WARMUP_DATA")
    if not folder or not Path(folder, "banking77").is_dir():
        print("bench/coverage.py: skipped, WARMUP_DATA names no folder with BANKING77")
        return
    parts = list(sections(Path(folder)))
    title = "# Choosing what to warm\n\nMade by `bench/coverage.py` for docs/adr/0004-selection.md."
    REPORT.write_text("\n\n".join([title, machine(), *parts]) + "\n", encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
