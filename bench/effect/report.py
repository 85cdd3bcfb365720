"""The report: tables of what was measured, and how. Nothing in it is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.effect import picture
from bench.effect.figures import (
    SHARE_IN_TIME,
    Spread,
    Step,
    in_time,
    reduction,
    spread,
    sustained,
    times_more,
)
from bench.effect.rates import SERIES, Series
from bench.effect.setting import Extent, Rows
from bench.effect.traffic import firsts
from bench.encoder import machine, table

GOAL = 0.85


@dataclass(frozen=True)
class Pair:
    """One first request, sent to the cold and to the warm stack."""

    cold: dict[str, Any]
    warm: dict[str, Any]


def pairs_of(part: dict[str, Any]) -> list[Pair]:
    """Return the pairs of a round or replay: the same request of the log in both arms.

    Raises:
        ValueError: The arms did not get the same requests.
    """
    cold, warm = (part[arm]["samples"] for arm in ("cold", "warm"))
    found = [Pair(c, w) for c, w in zip(cold, warm, strict=True)]
    if any(pair.cold["request_id"] != pair.warm["request_id"] for pair in found):
        raise ValueError("the arms did not get the same requests")
    return found


def whole(sample: dict[str, Any], block: int) -> bool:
    """Say whether all whole blocks of a sample's head came from the cache."""
    blocks = sample["tokens"] // block * block
    return bool((sample["cached_tokens"] or 0) >= blocks > 0)


def write(parts: dict[str, Any], extent: Extent, folder: Path) -> None:
    """Write effect.md and effect.png.

    Args:
        parts: What was measured.
        extent: How much that was.
        folder: Where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(parts, extent)
    text = "\n\n".join(report.sections()) + "\n"
    (folder / "effect.md").write_text(text, encoding="utf-8")
    picture.draw(folder / "effect.png", report)


class Report:
    """What was measured, by question.

    Args:
        parts: The measured parts by name.
        extent: How much was measured.
    """

    def __init__(self, parts: dict[str, Any], extent: Extent) -> None:
        self._parts = parts
        self.extent = extent
        self._block = int(parts["size"]["block"])
        self._rounds = [part for name, part in parts.items() if name.startswith("round ")]

    # -- figures ---------------------------------------------------------------------------------

    def pairs(self, kind: str) -> list[Pair]:
        """Return the first requests of a kind of heads, of all rounds.

        Args:
            kind: `long`; of these `base` and `adapters`; `short`: planned; `unplanned`: short.
        """
        limit = self.extent.long_tokens
        tests: dict[str, Callable[[dict[str, Any]], bool]] = {
            "long": lambda s: s["tokens"] >= limit,
            "base": lambda s: s["tokens"] >= limit and s["adapter"] is None,
            "adapters": lambda s: s["tokens"] >= limit and s["adapter"] is not None,
            "short": lambda s: s["tokens"] < limit and s["planned"],
            "unplanned": lambda s: s["tokens"] < limit and not s["planned"],
        }
        every = [pair for part in self._rounds for pair in pairs_of(part)]
        return [pair for pair in every if tests[kind](pair.cold)]

    def series(self, arm: str, series: Series) -> Rows:
        """Return the rates that were offered to an arm, lowest first, with their samples."""
        rows: Rows = self._parts[f"{arm} rates"]["series"][series.name]
        return sorted(rows, key=lambda row: row["rate"])

    def steps(self, arm: str, series: Series) -> list[Step]:
        """Return the same as steps."""
        rows = self.series(arm, series)
        return [Step(row["rate"], [s["first_ms"] for s in row["samples"]]) for row in rows]

    @property
    def looks(self) -> list[Rows]:
        """What looking at planned heads found, by time since warming."""
        found: list[Rows] = self._parts["warm answers"]["looks"]
        return [group for group in found if group]

    # -- text ------------------------------------------------------------------------------------

    def sections(self) -> Iterator[str]:
        """Yield the report's parts."""
        yield "# What warming is worth\n\nMade by `python -m bench.effect`, one run, all figures."
        yield f"{machine().replace('Commit', 'Written at commit')} {self._when()}"
        yield self._how()
        yield from self._first_requests()
        yield from self._sustained()
        yield from self._answers()
        yield from self._hits()
        yield from self._decay()

    def _when(self) -> str:
        commits = sorted({part["commit"] for part in self._parts.values()})
        ended = [part["ended"] for part in self._parts.values()]
        minutes = sum(part["seconds"] for part in self._parts.values()) / 60
        return (
            f"Measured {min(ended)} to {max(ended)} ({minutes:.0f} min) of commit "
            f"{', '.join(commits)}."
        )

    def _how(self) -> str:
        plan, size, extent = self._parts["plan"], self._parts["size"], self.extent
        items = ", ".join(f"{count:,} {layer}" for layer, count in plan["items"].items())
        return (
            "## How it was measured\n\n"
            f"- The log is composed (samples/README.md, scale {extent.scale:g}). The plan was made "
            f"after {plan['plan_day']} from 13 days: {items}. The traffic is that of "
            f"{plan['day']}, which the plan does not know: {size['requests']:,} requests asked the "
            "caches and are of a model or adapter that is served; "
            f"{size['unserved']:,} more are for adapters that are not. The conversation before a "
            "prompt is not sent.\n"
            f"- One embedded vLLM host on both cores, {size['cache']:,} tokens of KV cache, and "
            "one Redis. Warming is the product's own `plan` and `apply`. Live requests carry the "
            "`cache_salt` that a gateway derives for the tenant (docs/keys.md).\n"
            "- The cold stack is the same one, restarted, with its adapters loaded. What it "
            "lacks is what the other layers warm.\n"
            "- The sender runs on the same two cores as the host. A first token's time runs from "
            "when the request was due."
        )

    # -- first requests --------------------------------------------------------------------------

    def _first_requests(self) -> Iterator[str]:
        yield (
            "## First requests, answers off\n\n"
            "The first request of each (tenant, head) after a restart, planned or not, in the "
            "day's busiest hours, one hour a round: time to the first token in ms. Sent one at a "
            "time, so that no request waits behind another; queueing is the next section's. A cold "
            "first request is warm in part where another head of its tenant begins alike."
        )
        names = {
            "long": f"heads of {self.extent.long_tokens:,} tokens or more",
            "base": "of these, base model",
            "adapters": "of these, adapters",
            "short": "shorter heads that are planned",
            "unplanned": "shorter heads that no plan can hold (a clock in front, or new)",
        }
        rows = [self._kind_row(name, self.pairs(kind)) for kind, name in names.items()]
        head = ["first requests", "n", "stack", "P50", "P95", "P99", "head found whole"]
        yield table(head, [row for group in rows for row in group])
        yield self._goal()
        yield "By round, long heads:"
        yield table(
            ["round", "begins with", "n", "cold P50", "cold P95", "warm P50", "warm P95", "warmed"],
            [self._round_row(number, part) for number, part in enumerate(self._rounds)],
        )

    def _kind_row(self, name: str, pairs: Sequence[Pair]) -> list[list[object]]:
        if not pairs:
            return []
        cold, warm = (spread(s["first_ms"] for s in arm) for arm in _arms(pairs))
        found = [sum(whole(s, self._block) for s in arm) / len(pairs) for arm in _arms(pairs)]
        both = zip(_three(cold), _three(warm), strict=True)
        return [
            [name, len(pairs), "cold", *map(_ms, _three(cold)), f"{found[0]:.0%}"],
            ["", "", "warm", *map(_ms, _three(warm)), f"{found[1]:.0%}"],
            ["", "", "lower by", *(f"**{reduction(c, w):.1%}**" for c, w in both), ""],
        ]

    def _goal(self) -> str:
        pairs = self.pairs("long")
        cold, warm = (spread(s["first_ms"] for s in arm) for arm in _arms(pairs))
        p95, p99 = reduction(cold.p95, warm.p95), reduction(cold.p99, warm.p99)
        met = "met" if min(p95, p99) >= GOAL else "not met"
        faster = sum(pair.warm["first_ms"] < pair.cold["first_ms"] for pair in pairs) / len(pairs)
        planned = sum(pair.cold["planned"] for pair in pairs) / len(pairs)
        return (
            f"Wanted: P95 and P99 of long heads lower by {GOAL:.0%}: {met} ({p95:.1%} and "
            f"{p99:.1%}, n = {len(pairs)}). Of the pairs {faster:.0%} were faster warm; "
            f"{planned:.0%} of them have a planned head."
        )

    def _round_row(self, number: int, part: dict[str, Any]) -> list[object]:
        pairs = [p for p in pairs_of(part) if p.cold["tokens"] >= self.extent.long_tokens]
        times: list[object] = ["-"] * 4
        if pairs:
            cold, warm = (spread(s["first_ms"] for s in arm) for arm in _arms(pairs))
            times = [_ms(value) for value in (cold.p50, cold.p95, warm.p50, warm.p95)]
        warmed = part["warm"]["apply"]["completion"]["prefixes"]["completion"]
        begins = "a restart" if part["restart"] else "salts never used"
        return [number + 1, begins, len(pairs), *times, f"{warmed:.0%}"]

    # -- rates -----------------------------------------------------------------------------------

    def _sustained(self) -> Iterator[str]:
        extent = self.extent
        slo = f"{SHARE_IN_TIME:.0%} of the requests offered get their first token in {{}}"
        yield (
            f"## Requests a second in the first {extent.step_s:g} s after a restart\n\n"
            f"SLO: {slo.format(_s(extent.limits_ms[0]))}. The peak hour from its begin, its "
            "arrivals sped up to the rate, answers generated at the log's lengths, open loop. "
            "Rates are doubled while they hold and the last gap is halved; a step ends early once "
            "it can't hold any more, and what was not sent counts as late. Each step finds what a "
            "restart leaves: the cold stack was restarted, and salts are never used twice; to the "
            "warm one, restarted before the replay below, the plan is applied again before each "
            "series, and the last column tells whether its heads were still there. `all` holds the "
            "requests for adapters too: vLLM's CPU build copies an adapter's weights for every "
            "token, so that their questions alone, which nothing can warm, fill the host."
        )
        head = ["requests", "first token in", "cold", "warm", "warm is times cold"]
        sought = [(one, at) for one in SERIES for at in extent.limits_ms[: one.limits]]
        yield table(head, [self._slo_row(*one) for one in sought])
        yield "Every step:"
        head = ["requests", "stack", "rate", "offered", "P50 ms"]
        limits = [f"in {_s(at)}" for at in extent.limits_ms]
        yield table(
            [*head, *limits, "planned heads found whole"],
            [
                self._step_row(one.name, arm, row)
                for one in SERIES
                for arm in ("cold", "warm")
                for row in self.series(arm, one)
            ],
        )

    def _slo_row(self, series: Series, limit: float) -> list[object]:
        arms = {arm: self.steps(arm, series) for arm in ("cold", "warm")}
        cold, warm = (sustained(steps, limit) for steps in arms.values())
        least = min(step.rate for step in arms["cold"])
        return [
            series.name,
            _s(limit),
            f"{cold:.2f}/s" if cold else f"not even {least:.2f}/s",
            f"{warm:.2f}/s" if warm else "none",
            times_more(cold, warm, least),
        ]

    def _step_row(self, name: str, arm: str, row: dict[str, Any]) -> list[object]:
        first = [sample["first_ms"] for sample in row["samples"]]
        came = [ms for ms in first if ms is not None]
        known = [s for s in row["samples"] if s["planned"] and s["cached_tokens"] is not None]
        found = sum(whole(s, self._block) for s in known)
        shares = [f"{in_time(first, limit):.0%}" for limit in self.extent.limits_ms]
        share = f"{found / len(known):.0%}" if known else "-"
        half = _ms(spread(came).p50) if came else "-"
        return [name, arm, f"{row['rate']:.2f}/s", len(first), half, *shares, share]

    # -- answers ---------------------------------------------------------------------------------

    def _answers(self) -> Iterator[str]:
        cold, warm = (self._parts[f"{arm} answers"]["samples"] for arm in ("cold", "warm"))
        same = {sample["request_id"] for sample in cold}
        yield (
            "## First of each distinct prompt, answers on\n\n"
            f"The peak hour at {self.extent.answers_rate:g} requests a second, open loop. A "
            "request is first looked up in the answer cache (by identity, then by meaning; the "
            "encoding of the question counts), else the host is asked. The gateway keeps what it "
            "was answered, in both arms, so that only the first of each prompt counts here."
        )
        kinds = {
            "cold": cold,
            "warm, the same requests": [s for s in warm if s["request_id"] in same],
            "warm, the whole replay": warm,
        }
        rows = []
        for name, samples in kinds.items():
            first = firsts(samples, lambda s: (s["tenant"], s["identity"]))
            timed = spread(s["first_ms"] for s in first if s["first_ms"] is not None)
            stored = sum(s["served"] == "responses" for s in first) / len(first)
            late = sum(s["first_ms"] is None for s in first)
            rows.append([name, len(first), *map(_ms, _three(timed)), f"{stored:.0%}", late])
        head = [
            "stack",
            "n",
            "P50 ms",
            "P95 ms",
            "P99 ms",
            "served by a warmed answer",
            "no answer",
        ]
        yield table(head, rows)

    def _hits(self) -> Iterator[str]:
        day, ratios = self._parts["plan"]["day"], self._parts["warm answers"]["hit_ratio"]
        rows = [[layer, f"{ratio['overall']:.1%}"] for layer, ratio in ratios.items()]
        yield (
            "## Hit ratio by layer\n\n"
            f"All requests of {day} that asked the caches, by `warmup verify` at the end of the "
            "replay above; layers on a host by its sample of them."
        )
        yield table(["layer", "hit ratio"], rows)

    # -- decay -----------------------------------------------------------------------------------

    def _decay(self) -> Iterator[str]:
        yield (
            "## Decay\n\n"
            "Planned long heads looked at again under that same replay with answers on, each head "
            "once, so that no look keeps a head warm for a later one. Other traffic may: a head "
            "asked for in this hour is renewed by each request."
        )
        rows = []
        for group in self.looks:
            for live, name in ((True, "asked for in this hour"), (False, "not asked for")):
                part = [look for look in group if look["live"] is live]
                if not part:
                    continue
                timed = spread(look["first_ms"] for look in part)
                kept = sum(look["cached_share"] == 1 for look in part) / len(part)
                share = sum(look["cached_share"] for look in part) / len(part)
                minutes = f"{group[0]['minutes']:.1f}"
                times = (_ms(timed.p50), _ms(timed.p95))
                rows.append([minutes, name, len(part), f"{kept:.0%}", f"{share:.0%}", *times])
        head = ["minutes", "heads", "n", "whole", "tokens still cached", "P50 ms", "P95 ms"]
        yield table(head, rows)
        yield "![First tokens, rates, decay](effect.png)"


def _arms(pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
    return [pair.cold for pair in pairs], [pair.warm for pair in pairs]


def _three(one: Spread) -> tuple[float, float, float]:
    return one.p50, one.p95, one.p99


def _ms(value: float) -> str:
    return f"{value:,.0f}"


def _s(limit_ms: float) -> str:
    return f"{limit_ms:g} ms" if limit_ms < 1000 else f"{limit_ms / 1000:g} s"
