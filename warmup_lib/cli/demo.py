"""The command that runs the main job end to end on the sample log and the embedded stack."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmup_lib import pipeline
from warmup_lib.cli import explain, figure, render, scoring
from warmup_lib.cli.common import ERR, Call, command, table
from warmup_lib.config import Config, DocumentsConfig, warmup_home
from warmup_lib.errors import ConfigError, GateFailed

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.stage import Progress, StageReport

_SMALLEST = 2


@dataclass
class Run:
    """What the demo did, and how long each step took."""

    folder: Path
    config: Config
    source: str
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Say that a step begins, and keep how long it takes."""
        ERR.print(f"[bold]{len(self.seconds) + 1}. {name}[/]", highlight=False)
        begun = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begun, 2)


@click.command()
@click.option(
    "--log",
    default="shipped",
    show_default=True,
    help="`shipped`, or the folder of real texts to compose the log from.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo"),
    show_default=True,
    help="Where log, lake and picture are kept.",
)
@click.option("--scale", default=1.0, show_default=True, help="Size of the log; 1 is 70,000 rows.")
@command
def demo(call: Call, log: str, folder: Path, scale: float) -> None:
    """Run the main job end to end: log, plan, warm, prove, measure, explain.

    Everything stays in --folder; a second run reuses what is there. The embedded stack keeps
    running afterwards: `warmup stack down` stops it.

    \b
    Examples:
      warmup demo
      warmup demo --scale 0.1
      warmup demo --log DATA_FOLDER
    """
    source = "shipped" if log == "shipped" else "folder"
    place = folder / f"{source}-{scale:g}"
    config = call.config.model_copy(update={"lake": (place / "lake").absolute().as_uri()})
    run = Run(place, config, source)
    with call.progress() as progress:
        facts = _run(run, log, scale, progress)
    call.answer(facts, lambda console: _show(console, facts))
    if not all(gate["passed"] for gate in facts["verify"]["gates"].values()):
        raise GateFailed("a gate failed: see the table above")


def _run(run: Run, log: str, scale: float, progress: Progress) -> dict[str, Any]:
    with run.step("start the embedded stack"):
        run.skipped = _start_stack()
        if run.skipped:
            run.config = _without_hosts(run.config)
    with run.step("compose the sample log"):
        days = _compose(run, log, scale)
        run.config = _with_documents(run.config, run.folder / "log" / "docs")
    with run.step(f"ingest {len(days) - 1} days of history"):
        pipeline.ingest(run.config, days[:-1], "jsonl", progress)
    last, later = (p.name.removeprefix("requests-")[:10] for p in days[-2:])
    with run.step(f"plan after {last}"):
        built = pipeline.build_day(run.config, last, progress)
        planned = pipeline.plan(run.config, last, progress=progress)
    plan_id = planned.facts["plan_id"]
    with run.step("apply"):
        applied = pipeline.apply(run.config, plan_id, progress=progress)
    with run.step(f"ingest the later traffic ({later})"):
        pipeline.ingest(run.config, days[-1:], "jsonl", progress)
    with run.step("verify"):
        verified = pipeline.verify(run.config, plan_id, day=later, progress=progress)
    with run.step("explain"):
        explained = pipeline.explain(run.config, plan_id, day=later, progress=progress)
    picture = _draw(run, plan_id, later, verified)
    return {
        "composed": True,
        "source": run.source,
        "plan_id": plan_id,
        "plan": planned.facts,
        "embedded_texts": sum(r.facts.get("embedded", 0) for r in built if r.stage == "embed"),
        "apply": applied.facts,
        "verify": verified.facts,
        "explain": explained.facts,
        "skipped": run.skipped,
        "seconds": run.seconds,
        "picture": str(picture),
        "lake": run.config.lake,
    }


def _start_stack() -> list[str]:
    from warmup_lib.stack import status, up

    running = status(warmup_home())
    if running.redis and running.hosts:
        return []

    def say(line: str) -> None:
        ERR.print(f"   {line}", soft_wrap=True, markup=False, highlight=False)

    return list(up(warmup_home(), hosts=1, model_host=True, progress=say).skipped)


def _without_hosts(config: Config) -> Config:
    """Return the settings with no answers to generate, for want of a model host."""
    responses = config.layers.responses.model_copy(update={"generate": 0})
    layers = config.layers.model_copy(update={"responses": responses})
    return config.model_copy(update={"layers": layers})


def _with_documents(config: Config, folder: Path) -> Config:
    """Return the settings with the sample's documents, a folder a tenant."""
    documents = [
        DocumentsConfig(tenant=place.name, path=str(place.absolute()))
        for place in sorted(folder.iterdir())
        if place.is_dir()
    ]
    retrieval = config.layers.retrieval.model_copy(update={"documents": documents})
    layers = config.layers.model_copy(update={"retrieval": retrieval})
    return config.model_copy(update={"layers": layers})


def _compose(run: Run, log: str, scale: float) -> list[Path]:
    """Write the log where it is not there yet; return its files, oldest first."""
    try:
        from samples.folder import Folder
        from samples.generate import generate
        from samples.shipped import Shipped
    except ImportError:
        raise ConfigError(
            "the sample log's generator is not installed: run the demo in a checkout"
        ) from None
    out = run.folder / "log"
    if not (out / "manifest.json").exists():
        texts = Shipped() if run.source == "shipped" else Folder(Path(log))
        generate(out, texts, scale=scale)
    days = sorted(out.glob("requests-*.jsonl.gz"))
    if len(days) < _SMALLEST:
        raise ConfigError(f"{out} holds no log of two days: remove {run.folder} and run again")
    return days


def _draw(run: Run, plan_id: str, later: str, verified: StageReport) -> Path:
    hits = pipeline.open_lake(run.config).read(
        "hits", {"plan_id": plan_id, "window": later}, ["cold_ttft_ms", "warm_ttft_ms"]
    )
    pairs = [
        (row["cold_ttft_ms"], row["warm_ttft_ms"])
        for row in hits.to_pylist()
        if row["cold_ttft_ms"] is not None and row["warm_ttft_ms"] is not None
    ]
    picture = run.folder / "cold-and-warm.png"
    title = f"Warm-up planner, composed sample log ({run.source} texts)"
    figure.draw(picture, verified.facts, [c for c, _ in pairs], [w for _, w in pairs], title)
    return picture


def _program() -> str:
    """Return how a shell calls this program: by its name where it is found, else by its place."""
    if shutil.which("warmup"):
        return "warmup"
    beside = Path(sys.executable).with_name("warmup")
    return os.path.relpath(beside) if beside.exists() else f"{sys.executable} -m warmup_lib.cli"


def _show(console: Console, facts: dict[str, Any]) -> None:
    console.print(
        "\nThe log is [bold]composed[/]: arrivals, shares and popularity follow measured "
        "figures,\ntexts and latencies are made (samples/README.md). What is measured here is "
        "this stack's.\n"
    )
    verified = facts["verify"]
    plan = facts["plan"]
    console.print(f"plan {facts['plan_id']} ({plan['decision']})", soft_wrap=True)
    render.costs(console, facts["apply"])
    render.completion(console, verified)
    render.hit_ratios(console, verified)
    render.tiers(console, verified)
    render.tenants(console, verified)
    scoring.calibration(console, verified)
    render.first_token(console, verified)
    explain.causes(console, facts["explain"])
    render.gates(console, verified)
    for reason in facts["skipped"]:
        console.print(f"[yellow]skipped:[/] {reason}", soft_wrap=True)
    rows = [[name, seconds] for name, seconds in facts["seconds"].items()]
    rows.append(["total", round(sum(facts["seconds"].values()), 2)])
    console.print(table("Time", "step", "seconds", rows=rows))
    console.print(f"picture: {facts['picture']}", soft_wrap=True)
    program = _program()
    console.print(
        f"next: export WARMUP_HOME={warmup_home()}       (where stack and secret are)\n"
        f"      {program} sql top_clusters --lake {facts['lake']}\n"
        f"      {program} stack down          (the stack keeps running until then)",
        soft_wrap=True,
    )
