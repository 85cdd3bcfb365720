"""Writes what was measured as a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.encoder import table
from bench.kv_length.log import REQUESTS, SCALE
from bench.kv_length.measure import ARMS, BLOCK, BUDGET, ROOM, Sent


@dataclass(frozen=True)
class Arm:
    """What one arm's requests took."""

    hits: float
    mean: float
    p50: float
    p95: float
    tokens: float

    @staticmethod
    def of(measured: dict[str, Any], arm: str) -> Arm:
        """Return the figures of an arm: shares, ms, and cached head tokens among all of them."""
        sent = [Sent(**one) for one in measured["sent"] if one["arm"] == arm]
        times = [one.ttft_ms for one in sent]
        p50, p95 = np.percentile(times, [50, 95])
        cached = sum(one.cached for one in sent) / sum(one.whole for one in sent)
        hits = sum(one.hit for one in sent) / len(sent)
        return Arm(hits, float(np.mean(times)), float(p50), float(p95), cached)


CHARGED = {
    "static": "2,048 tokens",
    "length": "its own whole blocks",
    "blocks": "its new blocks, stems once",
}


def compared(measured: dict[str, Any]) -> list[str]:
    """Return the table of the arms and a sentence a difference."""
    arms = {name: Arm.of(measured, name) for name in measured["heads"]}
    head = (
        *("a head is charged", "heads planned", "hit ratio", "head tokens cached"),
        *("first token, mean", "p50", "p95"),
    )
    rows = [
        [
            CHARGED[name],
            measured["heads"][name],
            f"{arm.hits:.1%}",
            f"{arm.tokens:.1%}",
            *(f"{value:,.0f} ms" for value in (arm.mean, arm.p50, arm.p95)),
        ]
        for name, arm in arms.items()
    ]
    static = arms.pop("static")
    told = [
        f"Against 2,048 tokens, {CHARGED[name]}: mean first token {arm.mean / static.mean:.2f} "
        f"times, hit ratio {100 * (arm.hits - static.hits):+.1f} points."
        for name, arm in arms.items()
    ]
    requests = len(measured["sent"]) // len(measured["heads"])
    told.append(f"{requests} requests an arm. {measured['machine']} {measured['date']}.")
    return [table(head, rows), "", *told, ""]


def render(parts: dict[str, dict[str, Any]]) -> str:
    """Return the report."""
    lines = [
        "# A head's real length against a static 2,048 tokens",
        "",
        "Made by `python -m bench.kv_length reserved` and `paged`. The embedded vLLM (CPU, blocks "
        f"of {BLOCK} tokens), a budget of {BUDGET} blocks ({BUDGET * BLOCK:,} tokens) for heads. "
        f"The log is the composed sample (scale {SCALE}); heads are ranked by their decayed "
        f"requests on days 1 to 13. {REQUESTS} requests are drawn at random from day 14 and sent "
        "one at a time in order, heads with a moment in them included. Adapters are served by the "
        "base model here and kept apart by their salts, as tenants are. A hit: all whole blocks of "
        "the head came from the cache, as the host reports it.",
        "",
    ]
    if first := parts.get("reserved"):
        sizes = first["sizes"]
        tokens = ", ".join(f"{name} {value:,}" for name, value in sizes["tokens"].items())
        lines += [
            "## What heads take",
            "",
            f"{sizes['heads']} heads; tokens as the host renders them: {tokens}.",
            "",
            table(
                ("charged", "blocks for all heads"),
                [
                    ("2,048 tokens a head", f"{sizes['static_blocks']:,}"),
                    ("its own whole blocks", f"{sizes['blocks']:,}"),
                    ("its new blocks (stems once)", f"{sizes['distinct_blocks']:,}"),
                ],
            ),
            "",
            "## The budget holds the plan and nothing else",
            "",
            "All plans are resident on one host under salts of their own; each request goes to "
            "each arm, in turn first. A head outside the plan is cold each time, as where running "
            "requests take the rest of the cache.",
            "",
            *compared(first),
            "Which share of all requests of day 14 has a planned head, by budget (counted, not "
            "sent):",
            "",
            table(
                ("blocks", *(cell for arm in ARMS for cell in (f"heads, {CHARGED[arm]}", "share"))),
                [
                    (
                        f"{row['budget']:,}",
                        *(
                            cell
                            for arm in ARMS
                            for cell in (row[arm]["heads"], f"{row[arm]['share']:.1%}")
                        ),
                    )
                    for row in first["by_budget"]
                ],
            ),
            "",
        ]
    if second := parts.get("paged"):
        lines += [
            "## The host's own paging fills what a plan leaves free",
            "",
            f"A host whose whole cache is the budget and {ROOM} blocks for the request it serves "
            f"({second['kv_tokens']:,} tokens). Each arm begins with an empty cache and its plan; "
            "heads that the traffic brings stay until the host evicts them. A paging host has no "
            "static reservation to lose: it fills what the static plan leaves free with the first "
            "request of each head, so that the plans differ by first requests and evictions only. "
            "Nor does it keep planned blocks from what is not planned, which pushes some out.",
            "",
            *compared(second),
        ]
    return "\n".join(lines)
