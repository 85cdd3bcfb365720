"""Checks a model folder before it is loaded: presence, shape and type of every tensor, by headers.

What headers can't show is not found: a square matrix that was transposed looks as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warmup_lib.preflight.expected import HEAD, TABLES, Model, NoSize, NotKnown, Shape
from warmup_lib.preflight.findings import Finding, error, printable, shape_of
from warmup_lib.preflight.folder import CONFIG, INDEX, Folder, read_folder
from warmup_lib.preflight.header import Header, Tensor
from warmup_lib.preflight.parallel import check_division, check_ranks

_OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.gguf", "*rank*/*.pt")
_QUANTISED = ("quantize_config.json", "hf_quant_config.json")
_PACKED = (".qweight", ".qzeros", ".g_idx", ".weight_packed", ".weight_scale", ".scales")
_BUFFERS = ("rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached")
"""Tensors of old checkpoints that hosts compute themselves and skip."""
_FLOATS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
_MISSING = "copy the file that holds it, or convert the checkpoint again"
_RESHAPE = "convert the checkpoint again: a host would refuse the tensor, broadcast it or cut it"


@dataclass(frozen=True)
class Checked:
    """What a check of a folder gave.

    Attributes:
        findings: What is wrong; errors first.
        not_checked: What could not be checked, with the reason.
        files: Weight files read.
        tensors: Tensors in them.
        tensor_bytes: Bytes of all tensors.
        bytes_read: Bytes read to know this.
    """

    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...]
    files: int
    tensors: int
    tensor_bytes: int
    bytes_read: int

    @property
    def errors(self) -> list[Finding]:
        """The findings because of which the folder must not be loaded."""
        return [finding for finding in self.findings if finding.severity == "error"]


def check_model(path: Path, tensor_parallel: int = 1) -> Checked:
    """Check a model folder; reads headers and settings only.

    Args:
        path: The folder.
        tensor_parallel: Over how many ranks it is to be served.

    Raises:
        InputDataError: It is no folder, or holds no model.
    """
    folder = read_folder(path)
    model, why = _model(folder)
    findings = [*folder.findings, *_index_against_files(folder), *_twice(folder)]
    not_checked: list[str] = []
    if model is not None:
        findings += check_division(model, _ranks_of(folder, tensor_parallel))
    packed = _packed(folder)
    if not folder.headers:
        findings, not_checked = _without_weights(folder, findings)
    elif model is None or packed:
        not_checked.append(f"shapes: {packed or why}")
        findings += check_ranks(folder, None, tensor_parallel)
    else:
        findings += _types(folder)
        if folder.ranks:
            findings += check_ranks(folder, model, tensor_parallel)
        else:
            findings += _against_config(folder, model)
    if len(folder.ranks) > 1:
        not_checked.append("presence of tensors: the folder is cut into pipeline stages too")
    tensors = [tensor for header in folder.headers.values() for tensor in header.tensors.values()]
    return Checked(
        findings=tuple(sorted(findings, key=lambda finding: finding.severity)),
        not_checked=tuple(map(printable, not_checked)),
        files=len(folder.headers),
        tensors=len(tensors),
        tensor_bytes=sum(tensor.end - tensor.start for tensor in tensors),
        bytes_read=folder.bytes_read,
    )


def _ranks_of(folder: Folder, asked: int) -> int:
    """Return over how many ranks the folder is cut, else is to be."""
    return max((len(ranks) for ranks in folder.ranks.values()), default=asked)


def _without_weights(
    folder: Folder, findings: Sequence[Finding]
) -> tuple[list[Finding], list[str]]:
    if any(next(folder.path.glob(kind), None) for kind in _OTHER_WEIGHTS):
        return list(findings), ["weights: they are not in safetensors files"]
    if folder.index is not None:
        return list(findings), []  # each absent file is a finding already
    none = error(None, None, "safetensors files", "none", "copy the weights into the folder")
    return [*findings, none], []


def _model(folder: Folder) -> tuple[Model | None, str]:
    """Return the model of the config, or why it can't be told."""
    if folder.config is None:
        return None, "there is no config to compare them with"
    try:
        return Model(folder.config), ""
    except NoSize as why:
        fix = f"copy the {CONFIG} that belongs to these weights"
        folder.findings.append(error(CONFIG, None, "the sizes of a model", str(why), fix))
        return None, str(why)
    except NotKnown as why:
        return None, str(why)


def _packed(folder: Folder) -> str | None:
    """Say how the weights are quantised, which changes shapes and names; None: they are not."""
    config = folder.config or {}
    quantised = config.get("quantization_config") or config.get("compression_config")
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    names = (name for header in folder.headers.values() for name in header.tensors)
    if (
        quantised
        or any((folder.path / name).is_file() for name in _QUANTISED)
        or any(name.endswith(_PACKED) for name in names)
    ):
        told = method if isinstance(method, str) and method else "no method named"
        return f"the weights are quantised ({told})"
    return None


def _index_against_files(folder: Folder) -> list[Finding]:
    found = []
    for tensor, file in sorted((folder.index or {}).items()):
        header = folder.headers.get(file)
        if header is None or _unreadable(header) or tensor in header.tensors:
            continue
        where = next((h.file for h in folder.headers.values() if tensor in h.tensors), None)
        found.append(
            error(
                file,
                tensor,
                f"the tensor, which {INDEX} has here",
                f"it is in {where}" if where else "no such tensor",
                "copy the index that belongs to these files" if where else _MISSING,
            )
        )
    return found


def _twice(folder: Folder) -> list[Finding]:
    """Find tensors that two files hold: the one that is loaded last would win."""
    if folder.ranks:
        return []
    first: dict[str, str] = {}
    found = []
    for header in folder.headers.values():
        for tensor in header.tensors:
            if tensor in first:
                other = f"{first[tensor]} holds it too"
                fix = "remove the file that does not belong to this model"
                found.append(error(header.file, tensor, "each tensor in one file", other, fix))
            first.setdefault(tensor, header.file)
    return found


def _unreadable(header: Header) -> bool:
    return bool(header.findings) and not header.tensors


def _against_config(folder: Folder, model: Model) -> list[Finding]:
    """Compare every tensor of an uncut folder with the shapes that the config implies."""
    wanted = model.tensors()
    held = {
        name: (header.file, tensor)
        for header in folder.headers.values()
        for name, tensor in header.tensors.items()
    }
    indexed = set(folder.index or ())
    found = []
    for name, shape in wanted.items():
        if name not in held:
            # What the index names is a finding where it was looked for.
            if name not in indexed and not any(map(_unreadable, folder.headers.values())):
                found.append(error(None, name, shape_of(shape), "no such tensor", _MISSING))
            continue
        file, tensor = held[name]
        if tensor.shape != shape:
            found.append(_misshapen(file, tensor, shape))
    if model.tied and HEAD in held:
        file, tensor = held[HEAD]
        if tensor.shape != wanted[TABLES[0]]:
            found.append(_misshapen(file, tensor, wanted[TABLES[0]]))
    return found + [
        error(
            file,
            name,
            "only tensors that the config implies",
            f"one more, {shape_of(tensor.shape)}",
            f"a host would leave it out: copy the {CONFIG} that belongs to these weights",
        )
        for name, (file, tensor) in held.items()
        if name not in wanted and not name.endswith(_BUFFERS) and name != HEAD
    ]


def _misshapen(file: str, tensor: Tensor, shape: Shape) -> Finding:
    turned = " (transposed)" if tensor.shape == shape[::-1] else ""
    found = shape_of(tensor.shape) + turned
    return error(file, tensor.name, shape_of(shape), found, _RESHAPE)


def _types(folder: Folder) -> list[Finding]:
    """Find tensors that are no numbers to multiply by, and those of another type than the rest."""
    config = folder.config or {}
    of_config = config.get("dtype") or config.get("torch_dtype")
    named = of_config.removeprefix("torch.") if isinstance(of_config, str) else ""
    wrong: list[Finding] = []
    others: dict[str, list[tuple[str, str]]] = {}
    for header in folder.headers.values():
        for tensor in header.tensors.values():
            kind = _FLOATS.get(tensor.dtype)
            if kind is None:
                fix = "convert the checkpoint again, or name its quantisation in config.json"
                of = named or "a floating-point type"
                wrong.append(error(header.file, tensor.name, of, tensor.dtype, fix))
            elif kind != named and named:
                others.setdefault(tensor.dtype, []).append((header.file, tensor.name))
    return wrong + [
        Finding(
            "warning",
            places[0][0],
            places[0][1],
            named,
            f"{dtype} in this and {len(places) - 1:,} more tensors",
            "hosts convert them while loading; save them in the config's type to load faster",
        )
        for dtype, places in sorted(others.items())
    ]
