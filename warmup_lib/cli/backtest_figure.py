"""The picture of a backtest: what each policy hit, over the trace and period by period."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from warmup_lib.forecast.backtest import Backtest

_COLOURS = {
    "lru_cold": "#d9d9d9",
    "lru": "#4878a8",
    "lfu": "#8fb0d0",
    "static_last": "#8d7bb0",
    "static_all": "#bcb0d4",
    "ours": "#d1603d",
    "static_hindsight": "#6a9f58",
    "belady": "#a8c99c",
}
_LINES = ("lru", "lfu", "static_last", "ours", "static_hindsight")


def draw(path: Path, done: Backtest, title: str) -> None:
    """Write a PNG.

    Args:
        path: The file.
        done: The backtest.
        title: Says what the trace is.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(2, 3))
        _bars(left, done)
        _periods(right, done)
        figure.suptitle(f"{title}: caches of {done.capacity:,} items", x=0.01, ha="left")
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _bars(axes: Axes, done: Backtest) -> None:
    names = list(_COLOURS)[::-1]
    values = [100 * float(done.hits[name].mean()) for name in names]
    drawn = axes.barh(names, values, color=[_COLOURS[name] for name in names])
    axes.bar_label(drawn, fmt="%.1f", padding=2, fontsize=8)
    axes.set(
        xlabel="hits, % of accesses", title="The whole trace", xlim=(0, 1.15 * max(values) + 1)
    )


def _periods(axes: Axes, done: Backtest) -> None:
    sizes = np.diff(done.periods.start)
    hours = (done.periods.begins_at - done.periods.begins_at[0]) / 3.6e9
    for name in _LINES:
        hits = np.add.reduceat(done.hits[name].astype(np.int64), done.periods.start[:-1])
        width = 2.4 if name == "ours" else 1.2
        axes.plot(hours, 100 * hits / sizes, color=_COLOURS[name], lw=width, label=name)
    axes.set(xlabel="hours since the first period", ylabel="hits, %", title="Period by period")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, ncols=2)
