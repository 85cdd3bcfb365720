"""Forecasts beside what came true: how they are printed and drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warmup_lib.cli.common import percent, table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from rich.console import Console

_COLOURS = ("#4878a8", "#d1603d", "#6a9f58", "#8d7bb0")


def calibration(console: Console, facts: dict[str, Any]) -> None:
    """Print by layer what was expected and came, and how many hits lie in their interval."""
    rows = [
        [
            layer,
            one["items"],
            one["expected"],
            one["realised"],
            one["hot"]["items"],
            percent(one["hot"]["inside"]),
        ]
        for layer, one in facts.get("calibration", {}).items()
    ]
    columns = ("layer", "items", "expected hits", "hits", "expected 5 or more", "in 80 % interval")
    if rows:
        console.print(table("Forecasts and what came true", *columns, rows=rows))


def draw(path: Path, facts: dict[str, Any]) -> None:
    """Write a PNG: mean hits over mean expected hits, and the histogram of the PIT.

    Args:
        path: The file.
        facts: Facts of a verification with calibration.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    layers = facts["calibration"]
    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
        _reliability(left, layers)
        _pit(right, layers)
        title = f"Forecasts of {facts['plan_id']} and the traffic of {facts['window']}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _reliability(axes: Axes, layers: dict[str, Any]) -> None:
    ends: list[float] = []
    for colour, (layer, one) in zip(_COLOURS, layers.items(), strict=False):
        bins = [b for b in one["by_expected"] if b["expected"] > 0 and b["realised"] > 0]
        at, came = ([b[key] for b in bins] for key in ("expected", "realised"))
        axes.scatter(at, came, s=[20 + b["items"] for b in bins], color=colour, alpha=0.7)
        axes.plot(at, came, color=colour, label=layer)
        ends += at + came
    if ends:
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", ls=":", lw=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="mean expected hits a day",
        ylabel="mean hits that came",
        title="Items by expected hits (dotted: as expected)",
    )
    axes.legend(frameon=False)


def _pit(axes: Axes, layers: dict[str, Any]) -> None:
    for colour, (layer, one) in zip(_COLOURS, layers.items(), strict=False):
        counts = one["pit"]
        shares = [count * len(counts) / sum(counts) for count in counts]
        edges = [n / len(counts) for n in range(len(counts) + 1)]
        axes.stairs(shares, edges, color=colour, lw=2, label=layer)
    axes.axhline(1, color="grey", ls=":", lw=1)
    axes.set(
        xlabel="probability below what came (randomised PIT)",
        ylabel="items, as a multiple of an even share",
        title="Even: forecasts scatter as claimed",
        ylim=(0, None),
    )
    axes.legend(frameon=False)
