"""Measures what warming does to live first tokens: runs under the same live load, side by side.

    warmup stack up --hosts 2
    python -m bench.interference

writes bench/reports/interference.md and interference.png. What a broken-off run has measured is
kept, and the next one goes on from there.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.effect.kept import Kept
from bench.encoder import machine, table
from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib import stack
from warmup_lib.apply.stage import warm
from warmup_lib.config import Config, warmup_home
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.errors import HostUnavailable
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, PlanItem, item_id
from warmup_lib.layers.prefixes import Prefixes
from warmup_lib.stack.servers import MODEL_NAME
from warmup_lib.targets.chat import Chat, Head, RequestRefused
from warmup_lib.targets.host import ModelHost

MODES = ("without", "guarded", "unguarded")
REPORTS = Path(__file__).parent / "reports"
LIVE_TENANTS = ("codeforge", "hearth-home")
"""Their heads are short, about 200 tokens."""
WARM_TENANTS = ("acme-bank", "nordwind-travel", "lanting-shop")
"""Their heads are long, 1,200 to 2,200 tokens and their tools."""
LEAD_S = 5.0
SEED = 20260302


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        rounds: Rounds; each has one run of each mode.
        rate: Live requests a second, in the mean of a Poisson process.
        window_s: The warm-up window. Live requests go on until its end.
        heads: Long heads to warm in each run, every one for a tenant of its own.
        answer: Tokens of a live answer.
        step: Tokens of a step in which a head is grown.
    """

    rounds: int = 5
    rate: float = 1.0
    window_s: float = 75.0
    heads: int = 12
    answer: int = 16
    step: int = Config().layers.prefixes.step_tokens


@dataclass(frozen=True)
class Live:
    """One live request: when it is due, in seconds since the run began, and what it asks."""

    due: float
    system_prompt: str
    prompt: str


# -- the sample ----------------------------------------------------------------------------------


@cache
def rows() -> list[dict[str, Any]]:
    """Return the requests of the last day of a small sample log."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), Shipped(), scale=0.2)
        last = max(Path(folder).glob("requests-*.jsonl.gz"))
        with gzip.open(last, "rt", encoding="utf-8") as lines:
            read = [json.loads(line) for line in lines]
    return [r for r in read if r.get("system_prompt") and "health_check" not in r["extra"]]


def live_load(extent: Extent, number: int) -> list[Live]:
    """Return the live requests of one round: short warm heads, questions of the log."""
    draw = np.random.default_rng([SEED, number])
    ours = [r for r in rows() if r["tenant"] in LIVE_TENANTS and not r.get("messages")]
    heads = {r["system_prompt"] for r in ours}
    often = sorted(heads, key=lambda h: -sum(r["system_prompt"] == h for r in ours))[:6]
    ours = [r for r in ours if r["system_prompt"] in often]
    until = LEAD_S + extent.window_s
    gaps = draw.exponential(1 / extent.rate, size=int(4 * until * extent.rate))
    times = [float(t) for t in np.cumsum(gaps) if t < until]
    asked = [ours[i] for i in draw.integers(len(ours), size=len(times))]
    return [Live(t, r["system_prompt"], r["prompt"]) for t, r in zip(times, asked, strict=True)]


def long_heads(extent: Extent, mark: str) -> list[PlanItem]:
    """Return long heads of the log, each under a tenant that nothing was ever warmed for."""
    found = {
        (r["tenant"], r["system_prompt"], json.dumps(r["tools"]) if r.get("tools") else None)
        for r in rows()
        if r["tenant"] in WARM_TENANTS
    }
    by_tenant = [sorted(f for f in found if f[0] == tenant) for tenant in WARM_TENANTS]
    chosen = [
        heads[(n // len(by_tenant)) % len(heads)]
        for n, heads in ((n, by_tenant[n % len(by_tenant)]) for n in range(extent.heads))
    ]
    return [
        _item(f"{tenant}-{mark}-{n}", n, system_prompt, tools)
        for n, (tenant, system_prompt, tools) in enumerate(chosen, 1)
    ]


def _item(tenant: str, rank: int, system_prompt: str, tools: str | None) -> PlanItem:
    digest = f"{rank:032x}"
    return PlanItem(
        item_id=item_id(Prefixes.name, tenant, digest),
        rank=rank,
        layer=Prefixes.name,
        tenant=tenant,
        model=MODEL_NAME,
        model_revision=None,
        adapter=None,
        key_digest=digest,
        context_digest=None,
        text_digest=None,
        text=None,
        response=None,
        system_prompt=system_prompt,
        tools=tools,
        params=None,
        encoder=None,
        heat_micro=1,
        expected_micro=1,
        bytes=0,
        ttl_s=1800,
        reason="",
    )


# -- one run -------------------------------------------------------------------------------------


def be_live(url: str, asks: Sequence[Live], answer: int, salt: str, begin: float) -> list[Any]:
    """Send live requests when they are due; return each first token in ms, None for none.

    It runs in a process of its own, so that what the warm-up does can't delay the clock.
    """

    async def one(host: ModelHost, ask: Live) -> float | None:
        await asyncio.sleep(begin + ask.due - time.time())
        try:
            got = await host.chat(_chat(ask, answer, salt))
        except (HostUnavailable, RequestRefused):
            return None
        return got.ttft_ms

    async def all_of_them() -> list[float | None]:
        host = ModelHost("live", url, concurrency=1000, timeout_s=120)
        try:
            return list(await asyncio.gather(*[one(host, ask) for ask in asks]))
        finally:
            await host.close()

    return asyncio.run(all_of_them())


def _chat(ask: Live, answer: int, salt: str) -> Chat:
    head = Head(MODEL_NAME, ask.system_prompt)
    return Chat(
        head, ask.prompt, max_tokens=answer, salt=salt, low_priority=False, stream=answer > 1
    )


async def run(
    mode: str, url: str, asks: Sequence[Live], extent: Extent, pool: ProcessPoolExecutor
) -> dict[str, Any]:
    """Return the first tokens of one run, and what warming did meanwhile."""
    salt = uuid.uuid4().hex
    host = ModelHost("vllm-1", url, cache_salt="derived", concurrency=16, timeout_s=120)
    try:
        for ask in {ask.system_prompt: ask for ask in asks}.values():  # live traffic keeps it warm
            await host.chat(_chat(replace(ask, prompt="Hello."), 1, salt))
        begin = time.time() + 1.0
        load: Future[list[Any]] = pool.submit(be_live, url, asks, extent.answer, salt, begin)
        warmed: dict[str, Any] = {}
        if mode != "without":
            await asyncio.sleep(begin + LEAD_S - time.time())
            warmed = await _warm(host, extent, guarded=mode == "guarded")
        return {"first_ms": await asyncio.wrap_future(load), **warmed}
    finally:
        await host.close()


async def _warm(host: ModelHost, extent: Extent, *, guarded: bool) -> dict[str, Any]:
    settings = {
        "layers": {"prefixes": {"kv_share": 0.9, "step_tokens": extent.step}},
        "apply": {"window": extent.window_s, "interference": {"enabled": guarded}},
    }
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(f"file://{folder}")
        items = long_heads(extent, uuid.uuid4().hex[:8])
        keys = Keys(uuid.uuid4().bytes)
        config = Config.model_validate(settings)
        context = Context("bench", config, keys, LakeVectors(lake, ""), (host,))
        report = await warm(lake, items, [Prefixes()], [host], context, resume=False)
        proofs = await Prefixes().prove(items, host, context)
    facts = report.facts
    return {
        "seconds": facts["seconds"],
        "planned": len(items),
        "warmed": facts["warmed"],
        "resident": sum(proof.resident for proof in proofs),
        "tokens": facts["layers"]["prefixes"][host.name]["tokens"],
        "window_over": bool(facts["window_over"]),
        **facts["interference"].get(host.name, {}),
    }


# -- figures and report --------------------------------------------------------------------------


def beside(one: dict[str, Any], asks: Sequence[Live]) -> list[int]:
    """Return which live requests came while a run was warming."""
    return [n for n, a in enumerate(asks) if LEAD_S <= a.due < LEAD_S + one["seconds"]]


def compared(part: dict[str, Any], extent: Extent, number: int, mode: str) -> dict[str, float]:
    """Return percentiles of the live requests that came while `mode` warmed, with and without."""
    asks = live_load(extent, number)
    which = beside(part[mode], asks)
    found = {}
    for name in ("without", mode):
        times = [part[name]["first_ms"][n] for n in which]
        answered = [t if t is not None else float("inf") for t in times]
        for q in (50, 95):
            found[f"{name} {q}"] = float(np.percentile(answered, q, method="higher"))
    found["ratio"] = found[f"{mode} 95"] / found["without 95"]
    found["requests"] = len(which)
    return found


def write(parts: dict[str, Any], extent: Extent) -> None:
    """Write the report and the picture."""
    rounds = [parts[name] for name in sorted(parts) if name.startswith("round")]
    lines, ratios = [], {"guarded": [], "unguarded": []}
    for number, part in enumerate(rounds, 1):
        for mode, kept in ratios.items():
            c, w = compared(part, extent, number, mode), part[mode]
            kept.append(c["ratio"])
            lines.append(
                [
                    number,
                    mode,
                    int(c["requests"]),
                    *[f"{c[k]:,.0f}" for k in ("without 50", f"{mode} 50")],
                    *[f"{c[k]:,.0f}" for k in ("without 95", f"{mode} 95")],
                    f"{c['ratio']:.2f}",
                    f"{w['seconds']:.1f}",
                    f"{w['warmed']} / {w['planned']}",
                    f"{w['resident']} / {w['planned']}",
                    w.get("pauses", ""),
                    w.get("paused_s", ""),
                    w.get("peak_concurrency", ""),
                ]
            )
    median = {mode: statistics.median(found) for mode, found in ratios.items()}
    head = ["round", "warm-up", "live requests meanwhile", "P50 without, ms", "P50 with, ms"]
    head += ["P95 without, ms", "P95 with, ms", "P95 ratio", "warm-up, s", "warmed", "resident"]
    head += ["pauses", "paused, s", "most in flight"]
    guarded = [part["guarded"] for part in rounds]
    complete = all(g["resident"] == g["planned"] and not g["window_over"] for g in guarded)
    tokens = statistics.mean(g["tokens"] for g in guarded)
    text = f"""# Warming beside live traffic

Made by `python -m bench.interference`. {machine()}

{len(rounds)} rounds. Each has a run without warm-up, one with the guard and one with the guard off,
in turn, under the same live load: the same requests at the same moments, {extent.rate:g} a second
in the mean (Poisson), short warm heads and questions of the composed sample log, answers of
{extent.answer} tokens, streamed. They are sent from a process of its own to one embedded vLLM host
on one core. Warming begins {LEAD_S:g} s after the load: {extent.heads} heads of 1,200 to 2,200
tokens (and their tools) of the same log, each under a salt of its own that the host has never seen,
{tokens:,.0f} tokens to compute, in a window of {extent.window_s:g} s. Compared are the live
requests that came while warming went on, and the same ones of the run without.

**Median ratio of live P95 first-token time, with warm-up over without: {median["guarded"]:.2f} with
the guard** (bound: 2), {median["unguarded"]:.2f} with the guard off.
With the guard {"every" if complete else "NOT every"} warm-up had all its heads resident within its
window, by `cached_tokens` of a first probe.

{table(head, lines)}

With the guard off up to {Config().apply.concurrency} requests are in flight at once. Either way
heads are grown in steps of {extent.step} tokens at the lowest priority.

![Live first tokens](interference.png)
"""
    (REPORTS / "interference.md").write_text(text, encoding="utf-8")
    _draw(rounds, extent)


def _draw(rounds: Sequence[dict[str, Any]], extent: Extent) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    colours = {"without": "#4c72b0", "guarded": "#55a868", "unguarded": "#c44e52"}
    for mode in MODES:
        times = []
        for number, part in enumerate(rounds, 1):
            asks = live_load(extent, number)
            which = beside(part["guarded" if mode == "without" else mode], asks)
            times += [part[mode]["first_ms"][n] or float("inf") for n in which]
        ordered = np.sort(times)
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        left.step(ordered / 1000, share, label=f"{mode} ({len(ordered)})", color=colours[mode])
    left.set(xscale="log", xlabel="live first token, s", ylabel="share of live requests")
    left.axhline(0.95, color="grey", lw=0.8, ls=":")
    left.legend(title="warm-up (requests)")
    places = np.arange(len(rounds))
    for shift, mode in ((-0.2, "guarded"), (0.2, "unguarded")):
        found = [compared(p, extent, n, mode)["ratio"] for n, p in enumerate(rounds, 1)]
        right.bar(places + shift, found, 0.38, label=mode, color=colours[mode])
    right.axhline(2, color="black", lw=0.8, ls="--", label="bound")
    right.set(xlabel="round", ylabel="P95 with / without", xticks=places)
    right.set_xticklabels([str(n + 1) for n in places])
    right.legend()
    figure.savefig(REPORTS / "interference.png", dpi=110)
    plt.close(figure)


@click.command()
@click.option("--rounds", default=Extent.rounds, show_default=True)
@click.option("--rate", default=Extent.rate, show_default=True, help="Live requests a second.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo/interference"),
    show_default=True,
    help="Where what was measured is kept.",
)
def main(rounds: int, rate: float, out: Path) -> None:
    """Measure, and write the report and its picture."""
    hosts = stack.status(warmup_home()).hosts
    if not hosts:
        raise SystemExit("no model host runs: `warmup stack up --hosts 2`")
    extent = Extent(rounds=rounds, rate=rate)
    out.mkdir(parents=True, exist_ok=True)
    commit = ["git", "rev-parse", "--short", "HEAD"]
    kept = Kept(out / "measured.json", subprocess.check_output(commit, text=True).strip())
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(be_live, hosts[0].url, [], 1, "", 0.0).result()  # it starts, once

        def measured(number: int) -> dict[str, Any]:
            asks = live_load(extent, number)
            found: dict[str, Any] = {"extent": asdict(extent)}
            for turn in range(len(MODES)):
                mode = MODES[(number + turn) % len(MODES)]
                found[mode] = asyncio.run(run(mode, hosts[0].url, asks, extent, pool))
                told = {k: v for k, v in found[mode].items() if k != "first_ms"}
                p95 = np.percentile([t or np.inf for t in found[mode]["first_ms"]], 95)
                print(f"round {number} {mode}: P95 {p95:,.0f} ms {told}", flush=True)
            return found

        for number in range(1, rounds + 1):
            kept.part(f"round {number:02}", lambda n=number: measured(n))
    write(kept.parts, extent)
    print(f"wrote {REPORTS / 'interference.md'}")


if __name__ == "__main__":
    main()
