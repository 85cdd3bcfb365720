"""The demo's picture: first-token times cold and warm, and the hit ratio beside its baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

COLD, WARM, GREY, TOP, BEST = "#4878a8", "#d1603d", "#b9b9b9", "#8d7bb0", "#6a9f58"


def draw(
    path: Path, facts: dict[str, Any], cold_ms: list[float], warm_ms: list[float], title: str
) -> None:
    """Write a PNG.

    Args:
        path: The file.
        facts: Facts of a verification with later traffic.
        cold_ms: First-token times, cold; empty where no model host was asked.
        warm_ms: The same requests, warm.
        title: Says where the log comes from.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        if cold_ms:
            figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
            _latency(left, cold_ms, warm_ms)
        else:
            figure, right = plt.subplots(1, 1, figsize=(6, 4.2))
        _ratios(right, facts)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _latency(axes: Axes, cold_ms: list[float], warm_ms: list[float]) -> None:
    for values, colour, name in ((cold_ms, COLD, "cold"), (warm_ms, WARM, "warm")):
        ordered = sorted(values)
        share = [(i + 1) / len(ordered) for i in range(len(ordered))]
        axes.step(ordered, share, where="post", color=colour, lw=2, label=name)
    axes.set(
        xscale="log",
        xlabel="time to first token, ms (log scale)",
        ylabel="share of requests",
        ylim=(0, 1.02),
        title=f"The same {len(cold_ms)} requests, cold and warm",
    )
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(loc="lower right", frameon=False)


def _ratios(axes: Axes, facts: dict[str, Any]) -> None:
    layers = [la for la in facts["baselines"] if la in facts["hit_ratio"]]
    bars = (("cold", GREY), ("top_k", TOP), ("ours", WARM), ("hindsight", BEST))
    names = {"top_k": "plain Top-K"}
    for place, (key, colour) in enumerate(bars):
        values = [
            100
            * (
                facts["hit_ratio"][la]["overall"]
                if key == "ours"
                else facts["baselines"][la][key] or 0.0
            )
            for la in layers
        ]
        at = [i + (place - 1.5) * 0.2 for i in range(len(layers))]
        drawn = axes.bar(at, values, 0.19, color=colour, label=names.get(key, key))
        axes.bar_label(drawn, fmt="%.1f", fontsize=7)
    axes.set_xticks(range(len(layers)), layers)
    axes.set(ylabel="hit ratio, %", ylim=(0, 115), title=f"Later traffic ({facts['window']})")
    axes.legend(loc="upper left", ncols=4, frameon=False, fontsize=8)
