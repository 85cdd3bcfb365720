"""The picture of a dimension study: what each way to build keys comes to, and how keys grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

_HITS, _WRONG, _POSSIBLE = "#4878a8", "#d1603d", "#bcb0d4"


def draw(path: Path, facts: dict[str, Any]) -> None:
    """Write a PNG.

    Args:
        path: The file.
        facts: What `warmup_lib.dimensions.report.facts` gives.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6))
        _bars(left, facts["schemes"])
        _growth(right, facts["growth"])
        figure.suptitle(
            f"{facts['window']['requests']:,} requests; suggested: "
            f"{', '.join(facts['suggested']) or 'the question alone'}",
            x=0.01,
            ha="left",
        )
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _bars(axes: Axes, schemes: dict[str, Any]) -> None:
    names = list(schemes)[::-1]
    hits = [100 * schemes[name]["hit_ratio"] for name in names]
    wrong = [100 * (schemes[name]["wrong_merge_rate"] or 0) for name in names]
    places = range(len(names))
    for values, colour, shift, label in (
        (hits, _HITS, 0.2, "requests that could hit"),
        (wrong, _WRONG, -0.2, "judged hits with another answer"),
    ):
        drawn = axes.barh([p + shift for p in places], values, 0.38, color=colour, label=label)
        axes.bar_label(drawn, fmt="%.1f", padding=2, fontsize=8)
    axes.set_yticks(list(places), [name.replace("_", " ") for name in names])
    axes.set(xlabel="%", title="Ways to build keys", xlim=(0, 1.15 * max(*hits, *wrong, 1)))
    axes.legend(frameon=False, fontsize=8)


def _growth(axes: Axes, growth: list[dict[str, Any]]) -> None:
    steps = [g["dimensions"] for g in growth]
    labels = [g["added"] or "question" for g in growth]
    axes.plot(
        steps,
        [g["possible_keys"] for g in growth],
        color=_POSSIBLE,
        marker="o",
        label="possible keys",
    )
    axes.plot(steps, [g["keys"] for g in growth], color=_HITS, marker="o", label="keys seen")
    axes.set_xticks(steps, labels, rotation=35, ha="right", fontsize=8)
    axes.set(yscale="log", ylabel="distinct keys", title="Each step adds a field")
    axes.legend(frameon=False, fontsize=8)
