"""Trap `weight_shards`: tensors of the wrong shape, and warm-up that was sent and did not work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warmup_lib.doctor.base import Part, counted
from warmup_lib.preflight.check import Checked, check_model
from warmup_lib.preflight.deep import best_device, check_values
from warmup_lib.preflight.findings import Finding
from warmup_lib.stage import Progress

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 3
_MEND = "Mend or fetch again the files that are named, before a host loads them."
_WAIT = "Send no traffic to a rank that did fewer steps than the others; apply again with --resume."


def look_at_folder(
    folder: Path, ranks: int, deep: bool, progress: Progress
) -> tuple[Part, list[Finding]]:
    """Return what is known of a model folder, and all that was found in it.

    Args:
        folder: The model folder.
        ranks: Over how many ranks it is to be served.
        deep: Load the tensors too.
        progress: Told how many tensors were loaded.

    Raises:
        InputDataError: It is no folder, or holds no model.
    """
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
        return Part("found", " | ".join(told), _MEND), findings
    if checked.not_checked:
        why = "; ".join([*checked.not_checked, f"else sound: {seen}"])
        return Part("not_checked", why), findings
    return Part("ok", seen), findings


def _seen(checked: Checked) -> str:
    files = f"{checked.files:,} file{'s' if checked.files != 1 else ''}"
    held = f"{checked.tensors:,} tensors, {checked.tensor_bytes:,} bytes in {files}"
    return f"{held}; {checked.bytes_read:,} bytes read"


def look_at_receipts(receipts: pa.Table) -> Part | None:
    """Compare warm-up steps sent with those that worked, by rank; None: none were sent.

    Args:
        receipts: Receipts of one plan.
    """
    latest = {
        (row["item_id"], row["target"]): row
        for row in sorted(receipts.to_pylist(), key=lambda row: row["at"])
        if row["issued"] and row["effective"]
    }
    if not latest:
        return None
    told = [
        f"on '{row['target']}' {row['issued']} steps were issued to each rank, "
        f"{' / '.join(map(str, row['effective']))} worked"
        for row in latest.values()
        if min(row["effective"]) < row["issued"]
    ]
    if told:
        return Part("found", "; ".join(told), _WAIT)
    steps = sum(row["issued"] * len(row["effective"]) for row in latest.values())
    return Part("ok", f"all of {counted(steps, 'warm-up step')} of the latest plan worked")
