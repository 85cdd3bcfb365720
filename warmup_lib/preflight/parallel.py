"""Tensor parallelism: whether a model divides evenly, and whether each rank has its part."""

from __future__ import annotations

from warmup_lib.preflight.expected import HEAD, TABLES, Model, Shape
from warmup_lib.preflight.findings import Finding, error, shape_of
from warmup_lib.preflight.folder import CONFIG, Folder
from warmup_lib.preflight.header import Tensor

_PADDING = 64
"""vLLM pads the vocabulary to a multiple of this before it cuts it."""
_MOST_RANKS = 1024
_CUT_AGAIN = "cut the checkpoint again, all ranks in one run"


def check_division(model: Model, ranks: int) -> list[Finding]:
    """Find the sizes of a model that so many ranks can't share evenly.

    Args:
        model: The model.
        ranks: How many there are.
    """
    if ranks == 1:
        return []
    sizes = model.sizes
    found = [
        _uneven(name, value, ranks)
        for name, value in (
            ("num_attention_heads", sizes.heads),
            ("hidden_size", sizes.hidden),
            ("intermediate_size", sizes.intermediate),
        )
        if value % ranks
    ]
    # With more ranks than key heads, several ranks hold copies of one.
    if sizes.kv_heads % ranks and ranks % sizes.kv_heads:
        found.append(_uneven("num_key_value_heads", sizes.kv_heads, ranks))
    if _padded(sizes.vocabulary) % ranks:
        found.append(_uneven("vocab_size", sizes.vocabulary, ranks))
    elif sizes.vocabulary % ranks:
        found.append(
            Finding(
                "warning",
                CONFIG,
                None,
                f"a vocab_size divisible by {ranks} ranks",
                f"{sizes.vocabulary:,}",
                "vLLM pads it; a host that does not would cut the last words off",
            )
        )
    return found


def check_ranks(folder: Folder, model: Model | None, asked: int) -> list[Finding]:
    """Compare the files of each rank with its part of the model, and the ranks with each other.

    Args:
        folder: A folder; one that is not cut has nothing to find.
        model: What its config says; None: not known, so that only the ranks are compared.
        asked: Over how many ranks it is to be served; 1: as it is cut.
    """
    found: list[Finding] = []
    for _, ranks in sorted(folder.ranks.items()):
        count = max(ranks) + 1
        if count > _MOST_RANKS:
            file, most = ranks[count - 1][0], f"at most {_MOST_RANKS:,} ranks"
            found.append(error(file, None, most, f"one of rank {count - 1}", _CUT_AGAIN))
            continue
        missing = sorted(set(range(count)) - set(ranks))
        found += [
            error(None, None, f"files of ranks 0 to {count - 1}", f"none of rank {n}", _CUT_AGAIN)
            for n in missing
        ]
        if asked not in (1, count):
            fix = f"serve it over {count} ranks, or {_CUT_AGAIN}"
            found.append(error(None, None, f"files of {asked} ranks", f"of {count}", fix))
        parts = {rank: _Part(folder, files) for rank, files in ranks.items()}
        against: list[Finding] = []
        if model is not None:
            whole = len(folder.ranks) == 1
            for part in parts.values():
                against += _against(part, model, count, whole_model=whole)
        known = {(finding.file, finding.tensor) for finding in against}
        found += against
        found += [one for one in _between(parts) if (one.file, one.tensor) not in known]
    return found


class _Part:
    """The tensors of one rank, over all its files."""

    def __init__(self, folder: Folder, files: list[str]) -> None:
        self.files = files
        self.readable = all(folder.headers[file].tensors for file in files)
        self.tensors: dict[str, Tensor] = {}
        self.file: dict[str, str] = {}
        for file in files:
            for name, tensor in folder.headers[file].tensors.items():
                self.tensors[name] = tensor
                self.file[name] = file

    @property
    def fused(self) -> bool:
        return any(".qkv_proj." in name for name in self.tensors)


def _between(parts: dict[int, _Part]) -> list[Finding]:
    """Find what one rank lacks of another, and tensors that are not cut into equal parts."""
    found = []
    first = parts[min(parts)]
    for _, part in sorted(parts.items()):
        if not (part.readable and first.readable):
            continue
        for name in sorted(first.tensors.keys() ^ part.tensors.keys()):
            has, lacks = (first, part) if name in first.tensors else (part, first)
            there = f"no such tensor, though {has.file[name]} has it"
            found.append(error(lacks.files[0], name, "the same tensors", there, _CUT_AGAIN))
        for name in sorted(first.tensors.keys() & part.tensors.keys()):
            ours, theirs = part.tensors[name].shape, first.tensors[name].shape
            if ours != theirs:
                wanted = f"{shape_of(theirs)} as in {first.file[name]}"
                found.append(error(part.file[name], name, wanted, shape_of(ours), _CUT_AGAIN))
    return found


def _against(part: _Part, model: Model, ranks: int, *, whole_model: bool) -> list[Finding]:
    """Find tensors of one rank that are not its part of what the config implies."""
    whole = model.tensors(fused=part.fused)
    own = model.tensors(model.sizes.part(ranks), fused=part.fused)
    if model.tied:
        whole[HEAD], own[HEAD] = whole[TABLES[0]], own[TABLES[0]]
    found = []
    for name, shape in own.items():
        tensor = part.tensors.get(name)
        if tensor is None:
            optional = name == HEAD and model.tied
            if whole_model and part.readable and not optional:
                there = error(part.files[0], name, shape_of(shape), "no such tensor", _CUT_AGAIN)
                found.append(there)
        elif tensor.shape not in _allowed(name, shape, whole[name], model, ranks):
            found.append(
                error(
                    part.file[name],
                    name,
                    f"{shape_of(shape)}, a part of {shape_of(whole[name])} for each of "
                    f"{ranks} ranks",
                    shape_of(tensor.shape),
                    _CUT_AGAIN,
                )
            )
    return found


def _allowed(name: str, own: Shape, whole: Shape, model: Model, ranks: int) -> tuple[Shape, ...]:
    if name not in TABLES:
        return (own,)
    return (own, (_padded(model.sizes.vocabulary) // ranks, whole[1]))


def _padded(vocabulary: int) -> int:
    return -(-vocabulary // _PADDING) * _PADDING


def _uneven(name: str, value: int, ranks: int) -> Finding:
    fix = f"serve it over a number of ranks that divides {value}"
    return error(CONFIG, None, f"a {name} divisible by {ranks} ranks", f"{value:,}", fix)
