"""The command that looks for the seven traps, as far as what it was given lets it."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from warmup_lib.cli.common import Call, command, table
from warmup_lib.errors import ConfigError
from warmup_lib.stage import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from warmup_lib.preflight.check import Checked
    from warmup_lib.preflight.findings import Finding

_SHOWN = 3
_ELSEWHERE = {
    "tokenisation": "needs a host: `warmup verify` counts each head's cached tokens",
    "kv_length": "needs a host: `warmup apply` counts heads in whole cache blocks",
    "tenant": "needs targets: the control of `warmup verify --day` finds none",
    "bypass": "needs logs: `warmup verify --day` says how many go round caches",
    "key_dimensions": "needs logs: docs/keys.md lists what a key may hold",
    "out_of_step": "needs a host: `warmup apply` begins once it is ready",
}
"""The traps that are not looked for here, and what does."""


@dataclass(frozen=True)
class Trap:
    """What is known of one trap."""

    status: Literal["ok", "found", "not_checked"]
    evidence: str


@click.command()
@click.option(
    "--model-dir",
    type=click.Path(path_type=Path),
    help="Folder of a model: its files are checked against its config before it is loaded.",
)
@click.option(
    "--tensor-parallel",
    type=click.IntRange(min=1),
    help="Ranks over which the model is to be served.",
)
@click.option("--deep", is_flag=True, help="Load every tensor too (on CUDA, where there is one).")
@command
def doctor(call: Call, model_dir: Path | None, tensor_parallel: int | None, deep: bool) -> None:
    """Look for the seven traps. Exit 1 when one is found.

    \b
    Examples:
      warmup doctor --model-dir /models/llama
      warmup doctor --model-dir /models/llama --tensor-parallel 8 --deep
    """
    if model_dir is None and (deep or tensor_parallel):
        raise ConfigError("--deep and --tensor-parallel are about a model: give --model-dir too")
    weights = Trap("not_checked", "give --model-dir")
    findings: list[Finding] = []
    if model_dir is not None:
        with call.progress() as progress:
            weights, findings = check_weights(model_dir, tensor_parallel or 1, deep, progress)
    traps = {"weight_shards": weights}
    traps |= {name: Trap("not_checked", why) for name, why in _ELSEWHERE.items()}
    facts = {
        "traps": {name: asdict(trap) for name, trap in traps.items()},
        "findings": [asdict(finding) for finding in findings],
    }
    call.answer(facts, lambda console: show(console, traps, findings))
    if any(trap.status == "found" for trap in traps.values()):
        sys.exit(1)


def check_weights(
    folder: Path, ranks: int, deep: bool, progress: Progress
) -> tuple[Trap, list[Finding]]:
    """Return what is known of a model folder, and all that was found in it.

    Args:
        folder: The model folder.
        ranks: Over how many ranks it is to be served.
        deep: Load the tensors too.
        progress: Told how many tensors were loaded.

    Raises:
        InputDataError: It is no folder, or holds no model.
    """
    from warmup_lib.preflight.check import check_model
    from warmup_lib.preflight.deep import best_device, check_values

    checked = check_model(folder, ranks)
    findings = list(checked.findings)
    seen = _seen(checked)
    if deep:
        device = best_device()
        findings += check_values(folder, device, progress)
        seen += f"; every value read on {device}"
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        told = [str(finding) for finding in errors[:_SHOWN]]
        if more := len(errors) - len(told):
            told.append(f"and {more:,} more")
        return Trap("found", " | ".join(told)), findings
    if checked.not_checked:
        why = "; ".join([*checked.not_checked, f"else sound: {seen}"])
        return Trap("not_checked", why), findings
    return Trap("ok", seen), findings


def _seen(checked: Checked) -> str:
    files = f"{checked.files:,} file{'s' if checked.files != 1 else ''}"
    held = f"{checked.tensors:,} tensors, {checked.tensor_bytes:,} bytes in {files}"
    return f"{held}; {checked.bytes_read:,} bytes read"


def show(console: Console, traps: dict[str, Trap], findings: list[Finding]) -> None:
    """Print the traps as a table, and every finding in full."""
    words = {"not_checked": "not checked"}
    rows = [[name, words.get(t.status, t.status), t.evidence] for name, t in traps.items()]
    for row in rows:
        if row[1] == "found":
            row[2] = f"{len(findings):,} findings, below"
    console.print(table("Traps", "trap", "state", "evidence", rows=rows))
    for finding in findings:
        console.print(f"{finding.severity}: {finding}", soft_wrap=True, markup=False)
