"""Runs the gauntlet with several seeds and writes bench/reports/gauntlet.md."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.encoder import machine, table
from tests.gauntlet.confusion import Confusion
from tests.gauntlet.run import Gauntlet
from tests.gauntlet.traps import doctor, found, spoilt_model
from tests.gauntlet.world import World
from warmup_lib import stack
from warmup_lib.config import warmup_home

REPORT = Path(__file__).parent / "reports" / "gauntlet.md"
SEEDS = (20260316, 7, 11)

ABOUT = """# The gauntlet

Made by `python -m bench.gauntlet`. {machine}

A real Redis and two real model hosts with a plan that is applied to them; a gateway that looks
requests up with `warmup_lib.reader` and writes into its log what it honestly knows. In each run
faults of every cause are injected into single requests, each drawn by a seed and in a drawn
order, healthy requests between them: wrong tenants, weights, revisions, chat templates and
encoders in keys, further fields in keys, cut and unfolded texts, headers, parameters and blind
routes, short system prompts, other hosts, new, near and forbidden questions, entries that ran
out, were evicted (`maxmemory`, and by hand), refused or never written (`kill -9`), a host that is
asked while it starts and after it restarted, `FLUSHALL`. The labels lie in a file that `warmup
explain` and `warmup doctor` never see. A run takes {seconds:.0f} s.

## Causes

{runs} runs ({seeds}) together; a miss is one request and layer.

{causes}

## Traps

`warmup doctor` on traffic of the same stack with one trap set at a time, and on healthy traffic
with all that is odd about it: long prompts, rare tenants, many adapters, other spellings, callers
who mean their `no-cache`. Found, of {runs} runs:

{traps}
"""


def one(seed: int) -> tuple[Confusion, dict[str, list[str]]]:
    """Return what was told of causes, and which traps were found where one was set."""
    artifacts = warmup_home()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        os.environ["WARMUP_HOME"] = str(home)
        try:
            run = Gauntlet(World(home, artifacts, seed), seed)
            run.prepare()
            run.run()
            model = spoilt_model(run.world.model, home / "spoilt")
            run.examined["weight_shards"] = doctor(run.world, "--model-dir", str(model))
            return run.judge(), {set_: found(told) for set_, (_, told) in run.examined.items()}
        finally:
            os.environ["WARMUP_HOME"] = str(artifacts)
            stack.down(home)


def main() -> None:
    """Write the report."""
    os.environ.setdefault("WARMUP_SECRET", "the secret of the gauntlet alone")
    begun = time.perf_counter()
    total = Confusion(Counter(), Counter())
    traps: dict[str, Counter[str]] = {}
    for seed in SEEDS:
        confusion, by_trap = one(seed)
        total = total.plus(confusion)
        for trap, names in by_trap.items():
            traps.setdefault(trap, Counter()).update(names or ["none"])
    told = [
        [
            "healthy traffic" if trap == "sound" else trap,
            ", ".join(f"{n} {c}" for n, c in got.items()),
        ]
        for trap, got in traps.items()
    ]
    text = ABOUT.format(
        machine=machine(),
        seconds=(time.perf_counter() - begun) / len(SEEDS),
        runs=len(SEEDS),
        seeds=f"seeds {', '.join(map(str, SEEDS))}",
        causes=total.table(),
        traps=table(["set", "found"], told),
    )
    REPORT.write_text(text, encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
