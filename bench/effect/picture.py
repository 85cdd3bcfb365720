"""The picture: first tokens cold and warm, rates that hold, and what is left after minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.effect.figures import SHARE_IN_TIME, in_time
from bench.effect.rates import SERIES
from warmup_lib.cli.figure import COLD, WARM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.effect.report import Report


def draw(path: Path, report: Report) -> None:
    """Write a PNG.

    Args:
        path: The file.
        report: What was measured.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.8))
        _first_tokens(left, report)
        _rates(middle, report)
        _decay(right, report)
        figure.suptitle("Warm-up planner, composed sample log, peak hour", x=0.01, ha="left")
        figure.tight_layout()
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _first_tokens(axes: Axes, report: Report) -> None:
    pairs = report.pairs("long")
    arms = (
        ("cold", COLD, [pair.cold["first_ms"] for pair in pairs]),
        ("warm", WARM, [pair.warm["first_ms"] for pair in pairs]),
    )
    for name, colour, values in arms:
        share = [(n + 1) / len(values) for n in range(len(values))]
        axes.step(sorted(values), share, where="post", color=colour, lw=2, label=name)
    axes.set(
        xscale="log",
        xlabel="time to first token, ms (log scale)",
        ylabel="share of first requests",
        ylim=(0, 1.02),
        title=f"First requests after a restart, long heads, n = {len(pairs)}",
    )
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(loc="lower right", frameon=False)


def _rates(axes: Axes, report: Report) -> None:
    from matplotlib.ticker import NullLocator, ScalarFormatter

    limit = report.extent.limits_ms[0]
    for arm, colour in (("cold", COLD), ("warm", WARM)):
        for series, line in zip(SERIES, ("-", "--", ":"), strict=True):
            steps = report.steps(arm, series)
            rates = [step.rate for step in steps]
            shares = [100 * in_time(step.first_ms, limit) for step in steps]
            label = f"{arm}, {series.name}"
            axes.plot(rates, shares, line, marker="o", color=colour, label=label)
    axes.axhline(100 * SHARE_IN_TIME, color="grey", lw=1)
    axes.set(
        xscale="log",
        xlabel="requests offered a second (log scale)",
        ylabel=f"% with a first token in {limit:g} ms",
        ylim=(0, 105),
        title=f"The first {report.extent.step_s:g} s after a restart",
    )
    ticks = [0.25, 0.5, 1, 2, 4, 8, 16]
    low, high = axes.get_xlim()
    axes.set_xticks([t for t in ticks if low <= t <= high], minor=False)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(True, alpha=0.25)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False, fontsize=8)


def _decay(axes: Axes, report: Report) -> None:
    for live, label in ((True, "asked for in this hour"), (False, "not asked for")):
        minutes, shares = [], []
        for group in report.looks:
            part = [look["cached_share"] for look in group if look["live"] is live]
            if part:
                minutes.append(group[0]["minutes"])
                shares.append(100 * sum(part) / len(part))
        axes.plot(minutes, shares, "-" if live else ":", marker="o", color=WARM, label=label)
    axes.set(
        xlabel="minutes after warming, under traffic",
        ylabel="% of planned head tokens still cached",
        ylim=(0, 105),
        title="Decay",
    )
    axes.grid(True, alpha=0.25)
    axes.legend(loc="lower left", frameon=False)
