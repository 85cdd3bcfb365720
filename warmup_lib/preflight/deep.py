"""What headers can't show: loads every tensor and looks for values that are no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warmup_lib.preflight.findings import Finding, error
from warmup_lib.preflight.folder import read_folder
from warmup_lib.preflight.header import COPY_AGAIN
from warmup_lib.stage import Progress, silent


def best_device() -> str:
    """Return `cuda` where there is a GPU, else `cpu`."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def check_values(path: Path, device: str, progress: Progress = silent) -> list[Finding]:
    """Load each tensor onto a device, one at a time, and find NaN and infinities.

    Tensors and files that can't be loaded at all are findings too.

    Args:
        path: The model folder.
        device: `cuda` or `cpu`.
        progress: Told how many tensors are done.

    Raises:
        InputDataError: It is no folder, or holds no model.
    """
    from safetensors import safe_open

    # What has no tensors is a finding of the headers, and may be no file to be opened.
    headers = [header for header in read_folder(path).headers.values() if header.tensors]
    total = sum(len(header.tensors) for header in headers)
    found: list[Finding] = []
    done = 0
    for header in headers:
        try:
            with safe_open(path / header.file, framework="pt", device=device) as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no mapping
                    found += _read(header.file, name, opened)
                    done += 1
                    progress("values", done, total)
        except Exception:  # The file is at fault, whatever the library makes of it.
            loadable = "a file that loads"
            found.append(error(header.file, None, loadable, "one that does not", COPY_AGAIN))
    return found


def _read(file: str, name: str, opened: Any) -> Sequence[Finding]:
    try:
        return _look(file, name, opened.get_tensor(name))
    except Exception as why:  # The libraries raise many kinds, by type, shape and device.
        found = f"it could not be read ({type(why).__name__})"
        return (error(file, name, "a tensor that loads", found, COPY_AGAIN),)


def _look(file: str, name: str, tensor: Any) -> Sequence[Finding]:
    import torch

    if not tensor.is_floating_point():
        return ()
    # Eight-bit floats know no isfinite.
    wide = tensor.float() if tensor.element_size() == 1 else tensor
    wrong = int((~torch.isfinite(wide)).sum())
    if not wrong:
        return ()
    found = f"{wrong:,} of {tensor.numel():,} are NaN or infinite"
    return (error(file, name, "numbers only", found, COPY_AGAIN),)
