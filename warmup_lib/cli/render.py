"""What the commands of the main job print on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from warmup_lib.cli import scoring
from warmup_lib.cli.common import percent, table

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.stage import StageReport

_FIRST = 5
"""Items that a layer shows of those that a plan added or dropped."""


def ingest(console: Console, report: StageReport) -> None:
    """Print what was read, kept and put aside."""
    facts = report.facts
    days = facts["days"]
    span = f" ({days[0]} to {days[-1]})" if days else ""
    why = ", ".join(f"{reason} {count:,}" for reason, count in facts["quarantine"].items())
    console.print(
        f"read {facts['rows_read']:,} row{'' if facts['rows_read'] == 1 else 's'} in "
        f"{report.seconds:.1f} s: kept {facts['rows_kept']:,}{span}, {facts['duplicates']:,} "
        f"duplicates, {facts['rows_quarantined']:,} quarantined" + (f" ({why})" if why else ""),
        soft_wrap=True,
    )
    if why:
        console.print("`warmup sql quarantine` lists their files and lines")
    _notes(console, report)


def plan(console: Console, report: StageReport, built: list[StageReport]) -> None:
    """Print the decision, the chosen items and what was left out."""
    facts = report.facts
    if built:
        rows = [[r.stage, r.rows_in, r.rows_out, round(r.seconds, 2)] for r in _summed(built)]
        console.print(table("Stages", "stage", "rows in", "rows out", "seconds", rows=rows))
    base = f", which adds to {escape(facts['base'])}" if facts.get("base") else ""
    said = f"{facts['decision']}: [bold]{escape(facts['plan_id'])}[/]{base}"
    console.print(said, soft_wrap=True)
    rows = [
        [layer, count, facts["expected_hits"].get(layer, 0.0), _reasons(facts, layer)]
        for layer, count in facts["items"].items()
    ]
    columns = ("layer", "items", "expected hits a day", "left out")
    console.print(table("Plan", *columns, rows=rows))
    _sources(console, facts["sources"])
    if "planned" in facts:
        planned(console, facts)
        budgets(console, facts)
    _notes(console, replace(report, notes=tuple(plan_notes(report, built))))


def plan_notes(report: StageReport, built: Sequence[StageReport]) -> list[str]:
    """Return the notes of a plan and of all stages before it, each once."""
    return list(dict.fromkeys(note for one in [*built, report] for note in one.notes))


def planned(console: Console, facts: dict[str, Any]) -> None:
    """Print what warming the plan will take, and what waiting it saves, by layer."""
    rows = [
        [layer, took["seconds"], took["bytes"] / 2**20, took["saved_s"], _cost_from(took["from"])]
        for layer, took in facts["planned"].items()
        if facts["items"][layer]
    ]
    columns = ("layer", "seconds", "MiB", "seconds saved a day", "costs from")
    console.print(
        table(
            "What it will take on each target",
            *columns,
            rows=rows,
            note="Saved: waiting of the hits that warming adds, by what waiting was measured "
            f"({facts['figures']['answer_ms']}, {facts['figures']['token_ms']}). Guesses of costs "
            "can be many times off, until a plan of an earlier day has been applied.",
        )
    )


def _cost_from(where: str) -> str:
    return "guess" if where == "default" else where


def budgets(console: Console, facts: dict[str, Any]) -> None:
    """Print limit and use of each budget that layers share, and how near the best choice is."""
    if "gap" not in facts:
        return
    rows = [[name, one["used"], one["limit"]] for name, one in facts["budgets"].items()]
    console.print(
        table(
            "Budgets",
            *("budget", "used", "limit"),
            rows=rows,
            note="No choice within them that keeps to the same floors and caps saves more than "
            f"{facts['bound_s']:,} seconds a day: this one saves {1 - facts['gap']:.2%} of that.",
        )
    )


def _sources(console: Console, sources: dict[str, Any]) -> None:
    """Print who proposed how many items, where it is not the log's own demand alone."""
    if set(sources) <= {"queries", "clusters", "heads"}:
        return
    rows = [
        [name, ", ".join(f"{layer} {n:,}" for layer, n in found["items"].items()), found["only"]]
        for name, found in sources.items()
    ]
    console.print(table("Sources", "source", "items", "of no other source", rows=rows))


def _summed(built: list[StageReport]) -> list[StageReport]:
    """Return one report a stage: the day stages run once a day of the history."""
    by_stage: dict[str, StageReport] = {}
    for one in built:
        held = by_stage.get(one.stage)
        by_stage[one.stage] = (
            one
            if held is None
            else replace(
                held,
                rows_in=held.rows_in + one.rows_in,
                rows_out=held.rows_out + one.rows_out,
                seconds=held.seconds + one.seconds,
            )
        )
    return list(by_stage.values())


def _reasons(facts: dict[str, Any], layer: str) -> str:
    reasons = facts["left_out"].get(layer, {})
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))


def plan_diff(console: Console, facts: dict[str, Any]) -> None:
    """Print how many items each layer added, kept and dropped, and the first that changed."""
    rows = [
        [
            layer,
            *[_count(counts[k]) for k in ("added", "kept", "dropped")],
            ", ".join(f"{word} {n:,}" for word, n in counts["why_dropped"].items()),
        ]
        for layer, counts in facts["layers"].items()
    ]
    columns = ("layer", "added", "kept", "dropped", "dropped for")
    console.print(table("Plan diff", *columns, rows=rows))
    for side, why in (("added", "reason"), ("dropped", "left_out")):
        changed = [
            [layer, one["tenant"], one["expected_hits"], one[why] or "not asked for any more"]
            for layer, counts in facts["layers"].items()
            for one in counts["items"][side][:_FIRST]
        ]
        if changed:
            title = f"First {side}, up to {_FIRST} a layer; --json has all"
            heads = ("layer", "tenant", "expected hits a day", "why")
            console.print(table(title, *heads, rows=changed, whole=True))


def plan_compare(console: Console, facts: dict[str, Any]) -> None:
    """Print time, memory and first tokens of two plans, and the second one's share of the first."""
    told = [
        [
            plan["plan_id"],
            plan["strategy"],
            plan["items"],
            plan["seconds"],
            plan["redis_bytes"] / 2**20,
            plan["host_bytes"] / 2**20,
            plan["cold_ms"],
            plan["warm_ms"],
            None if plan["gain"] is None else percent(plan["gain"]),
        ]
        for plan in facts["plans"]
    ]
    columns = ["plan", "strategy", "items", "seconds", "MiB Redis", "MiB host"]
    columns += ["P95 cold, ms", "P95 warm, ms", "P95 gain"]
    console.print(table("Two plans", *columns, rows=_with_dashes(told)))
    if idle := [plan["plan_id"] for plan in facts["plans"] if plan["seconds"] is None]:
        console.print(f"not applied yet: {', '.join(idle)}; run `warmup apply --plan ID`")
        return
    names = {"seconds": "time", "bytes": "added memory, Redis and host", "gain": "P95 gain"}
    ratios = {names[name]: one for name, one in facts["ratio"].items()}
    known = [f"{one:.2f}x the {name}" for name, one in ratios.items() if one is not None]
    unknown = [name for name, one in ratios.items() if one is None]
    said = [*known, *([f"not known: {', '.join(unknown)}"] if unknown else [])]
    console.print(f"second to first: {', '.join(said)}", soft_wrap=True)


def _with_dashes(rows: list[list[Any]]) -> list[list[Any]]:
    return [["-" if cell is None else cell for cell in row] for row in rows]


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(value)


def apply(console: Console, report: StageReport) -> None:
    """Print completion and cost by layer and target."""
    facts = report.facts
    states = ("planned", "done", "already", "failed", "skipped", "missing")
    rows = [
        [layer, target, *[c[state] for state in states], percent(c["completion"])]
        for layer, targets in facts["completion"].items()
        for target, c in targets.items()
    ]
    columns = ("layer", "target", "planned", "warmed", *states[2:], "completion")
    console.print(table(f"Applied in {facts['seconds']:.1f} s", *columns, rows=rows))
    costs(console, facts)
    for down in facts["unavailable"]:
        console.print(
            f"[bold red]down:[/] {escape(down['target'])}: {escape(down['reason'])}", soft_wrap=True
        )
    console.print(f"receipts: {escape(facts['receipts'])}", soft_wrap=True)
    _notes(console, report)


def costs(console: Console, facts: dict[str, Any]) -> None:
    """Print what each layer took on each target: items, time, memory, tokens."""
    rows = [
        [
            layer,
            target,
            took["items"],
            round(took["seconds"], 2),
            took["bytes"] / 2**20,
            took["tokens"],
            f"{took['effective']} of {took['issued']}" if "issued" in took else "",
        ]
        for layer, targets in facts["layers"].items()
        for target, took in targets.items()
    ]
    columns = ("layer", "target", "warmed", "seconds", "MiB", "tokens", "steps that worked")
    console.print(
        table(
            "What each layer took, in this order on each target",
            *columns,
            rows=rows,
            note="Warmed: now, without those that were resident already. MiB: on a Redis by how "
            "much its memory grew meanwhile, on a model host what the items hold there. Tokens: "
            "computed by the host for them.",
        )
    )


def _notes(console: Console, report: StageReport) -> None:
    for note in report.notes:
        console.print(f"[dim]note:[/] {escape(note)}", soft_wrap=True)


def verify(console: Console, report: StageReport) -> None:
    """Print residency, hit ratios beside their baselines, first-token times and gates."""
    facts = report.facts
    completion(console, facts)
    if "hit_ratio" in facts:
        hit_ratios(console, facts)
        tiers(console, facts)
        tenants(console, facts)
        scoring.calibration(console, facts)
        first_token(console, facts)
    gates(console, facts)
    _notes(console, report)


def completion(console: Console, facts: dict[str, Any]) -> None:
    """Print planned and resident items by layer and target."""
    rows = [
        [layer, target, c["planned"], c["resident"], percent(c["completion"])]
        for layer, targets in facts["completion"].items()
        for target, c in targets.items()
    ]
    rows += [[layer, "none", "", "", "skipped"] for layer in facts["skipped_layers"]]
    columns = ("layer", "target", "planned", "resident", "completion")
    console.print(table("Residency, by looking", *columns, rows=rows))


def hit_ratios(console: Console, facts: dict[str, Any]) -> None:
    """Print each layer's hit ratio beside cold, plain Top-K and hindsight of the same size."""
    rows = []
    for layer, beside in facts["baselines"].items():
        ours = facts["hit_ratio"].get(layer)
        if ours is None:
            continue
        best = beside["hindsight"]
        rows.append(
            [
                layer,
                beside["size"],
                ours["requests"],
                percent(beside["cold"]),
                percent(beside["top_k"]),
                percent(ours["overall"]),
                percent(best),
                percent(ours["overall"] / best) if best else "-",
            ]
        )
    columns = ("layer", "items", "requests", "cold", "plain Top-K", "ours", "hindsight", "of it")
    console.print(
        table(
            f"Hit ratio on {facts['window']}",
            *columns,
            rows=rows,
            note="All sets have the same size and serve the same requests. Plain Top-K: the most "
            "asked of the plan's last day. Hindsight: greedy best set, chosen knowing these "
            "requests. On model hosts the requests are a sample of the day.",
        )
    )


def tiers(console: Console, facts: dict[str, Any]) -> None:
    """Print the hit ratio of each tier among the requests that ask for such an entry."""
    names = {"L1": "system prompts", "L2": "user segments", "L3": "chunk lists"}
    rows = [
        [f"{tier} {names[tier]}", one["layer"], one["requests"], percent(one["hit_ratio"])]
        for tier, one in facts["tiers"].items()
    ]
    for of_layer in facts["audit"].values():
        for target, counts in of_layer.items():
            checked, equal = counts["lists_checked"], counts["lists_equal"]
            rows.append(
                [
                    f"L3 on {target} as a fresh search",
                    "",
                    checked,
                    percent(equal / checked if checked else None),
                ]
            )
    if rows:
        console.print(table("Tiers", "tier", "layer", "requests or lists", "found", rows=rows))


def tenants(console: Console, facts: dict[str, Any]) -> None:
    """Print the hit ratio by tenant and layer."""
    layers = list(facts["hit_ratio"])
    names = sorted({t for one in facts["hit_ratio"].values() for t in one["tenants"]})
    rows = [
        [tenant, *[percent(facts["hit_ratio"][la]["tenants"].get(tenant)) for la in layers]]
        for tenant in names
    ]
    console.print(table("Hit ratio by tenant", "tenant", *layers, rows=rows))


def first_token(console: Console, facts: dict[str, Any]) -> None:
    """Print first-token percentiles of the requests that were sent both cold and warm."""
    measured = facts["first_token"]
    if not measured:
        return
    rows = [
        [name, measured[key]["n"], measured[key]["p50"], measured[key]["p99"]]
        for name, key in (("cold (fresh salt)", "cold"), ("warm", "warm"))
    ]
    title = f"Time to first token, median {measured['speed_up']:.1f}x"
    console.print(table(title, "same requests", "n", "P50 ms", "P99 ms", rows=rows))


def gates(console: Console, facts: dict[str, Any]) -> None:
    """Print each gate with its value and whether it holds."""
    for name, gate in facts["gates"].items():
        mark = "[green]passed[/]" if gate["passed"] else "[bold red]failed[/]"
        console.print(f"gate {name}: {gate['value']:.4g} against {gate['threshold']:g}: {mark}")
