"""A tenant's clusters: order, names, members."""

from __future__ import annotations

from typing import Any

import numpy as np

from warmup_lib.cluster.tenant import Texts, clusters
from warmup_lib.config import ClusterConfig

CONFIG = ClusterConfig(per_tenant=2, seed=1)


def texts(*rows: tuple[str, float, int, bool], requests: int = 1) -> Texts:
    """Return texts from (text, degrees, heat, clean); digests are d0, d1 ..."""
    angles = np.radians([degrees for _, degrees, _, _ in rows])
    return Texts(
        tenant="acme",
        digests=[f"d{i}" for i in range(len(rows))],
        texts=[text for text, _, _, _ in rows],
        clean=np.array([clean for _, _, _, clean in rows]),
        heat_micro=np.array([heat for _, _, heat, _ in rows], np.int64),
        requests=np.full(len(rows), requests, np.int64),
        vectors=np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32),
    )


def found(*rows: tuple[str, float, int, bool]) -> list[dict[str, Any]]:
    return [cluster.row for cluster in clusters(texts(*rows, requests=3), CONFIG)]


def test_the_hottest_cluster_is_number_one() -> None:
    rows = found(
        ("cold", 0, 10, True), ("cold too", 5, 10, True), ("hot", 90, 50, True), ("x", 95, 1, True)
    )
    assert [(r["cluster_id"], r["heat_micro"], r["prompts"]) for r in rows] == [
        ("acme/001", 51, 2),
        ("acme/002", 20, 2),
    ]
    assert [r["requests"] for r in rows] == [6, 6]


def test_equal_heat_is_settled_by_the_smallest_digest() -> None:
    rows = found(("a", 0, 5, True), ("b", 90, 5, True), ("c", 91, 5, True), ("d", 1, 5, True))
    assert [r["medoid"] for r in rows] == ["d0", "d1"]


def test_a_cluster_is_named_by_its_most_typical_text_that_is_clean() -> None:
    rows = found(
        ("edge", 0, 9, True),
        ("[EMAIL]", 10, 9, False),
        ("other edge", 21, 9, True),
        ("away", 180, 1, True),
        ("also away", 181, 1, True),
    )
    # The middle one is most typical, but something was redacted in it.
    assert (rows[0]["medoid"], rows[0]["label"]) == ("d0", "edge")


def test_a_cluster_of_redacted_texts_is_named_by_one_of_them() -> None:
    rows = found(("[EMAIL]", 0, 9, False), ("[PHONE]", 1, 8, False), ("clean", 90, 1, True))
    assert rows[0]["label"] == "[EMAIL]"


def test_a_long_label_is_one_line_and_cut() -> None:
    (row,) = found(("word\n" * 200, 0, 1, True))
    assert len(row["label"]) == 160
    assert row["label"].startswith("word word")
    assert row["label"].endswith("\N{HORIZONTAL ELLIPSIS}")


def test_members_are_all_texts_once_with_their_own_heat() -> None:
    rows = [(f"text {i}", 37.0 * i, i, True) for i in range(40)]
    made = list(clusters(texts(*rows), ClusterConfig(per_tenant=24, seed=1)))
    members = [m for cluster in made for m in cluster.members]
    assert sorted(m["text_digest"] for m in members) == sorted(f"d{i}" for i in range(40))
    assert {m["text_digest"]: m["heat_micro"] for m in members} == {f"d{i}": i for i in range(40)}
    for cluster in made:
        assert cluster.row["prompts"] == len(cluster.members)
        assert cluster.row["heat_micro"] == sum(m["heat_micro"] for m in cluster.members)
        assert cluster.row["medoid"] in {m["text_digest"] for m in cluster.members}
    heats = [cluster.row["heat_micro"] for cluster in made]
    assert heats == sorted(heats, reverse=True)
