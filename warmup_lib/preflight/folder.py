"""What lies in a model folder: its config, its index, and the headers of the files that count."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.preflight.findings import Finding, error
from warmup_lib.preflight.header import COPY_AGAIN, Header, read_header

CONFIG, INDEX = "config.json", "model.safetensors.index.json"

# vLLM writes model-rank-0-part-0 and model-pp-0-tp-0-part-0, Megatron mp_rank_00 or mp_rank_00_000
# with the pipeline stage last. The rank of a LoRA is another.
_RANK = re.compile(r"(?:^|(?<!(?i:lora))[-_/])(?:rank|tp)[-_]?(\d+)")
_STAGE = re.compile(r"(?:^|[-_/])(?:pp[-_]?|mp_rank_\d+_)(\d+)")
_PART = re.compile(r"-(\d+)-of-(\d+)\.safetensors$")
_OUTSIDE = "a name outside of the folder"
_LARGEST_JSON = 64_000_000
_SHOWN = 10


@dataclass
class Folder:
    """A model folder, read without its tensors' data.

    Attributes:
        path: Where it is.
        config: The content of config.json; None: it is not there or can't be read.
        headers: Of the files that a host would load, by name.
        index: Tensor -> file, as the index has it; None: there is no index.
        ranks: Pipeline stage -> rank -> the files of that rank; empty: the folder is not cut.
        bytes_read: Bytes read to know this.
        findings: What is wrong already.
    """

    path: Path
    config: dict[str, Any] | None = None
    headers: dict[str, Header] = field(default_factory=dict)
    index: dict[str, str] | None = None
    ranks: dict[int, dict[int, list[str]]] = field(default_factory=dict)
    bytes_read: int = 0
    findings: list[Finding] = field(default_factory=list)

    def json(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object of the folder; None: there is none, which may be a finding."""
        file = self.path / name
        if not (file.is_file() or file.is_symlink()):
            return None
        if file.is_file() and file.stat().st_size <= _LARGEST_JSON:
            raw = file.read_bytes()
            self.bytes_read += len(raw)
            try:
                parsed = json.loads(raw)
            except (ValueError, RecursionError):
                parsed = None
            if isinstance(parsed, dict):
                return parsed
        self.findings.append(error(name, None, "a JSON object", "something else", COPY_AGAIN))
        return None


def read_folder(path: Path) -> Folder:
    """Return what a model folder holds.

    Raises:
        InputDataError: It is no folder, holds no model, or a file of it may not be read, so that
            nothing can be said.
    """
    try:
        return _read(path)
    except OSError as why:
        raise InputDataError(f"{why.filename or path} can't be read: {why.strerror}") from why


def _read(path: Path) -> Folder:
    if not path.is_dir():
        raise InputDataError(f"no such folder: {path}")
    folder = Folder(path)
    folder.config = folder.json(CONFIG)
    files = _weight_files(path)
    if not files and folder.config is None and not folder.findings:
        raise InputDataError(f"no model in {path}: it holds neither config.json nor safetensors")
    if folder.config is None and not folder.findings:
        folder.findings.append(
            error(CONFIG, None, "the model's config", "no such file", COPY_AGAIN)
        )
    folder.ranks = _ranks(files)
    if not folder.ranks:
        files = _indexed(folder, files)
    for file in files:
        header = _header(path, file)
        folder.headers[file] = header
        folder.bytes_read += header.bytes_read
        folder.findings += header.findings
    if not folder.ranks:
        folder.findings += _parts_missing(files)
    return folder


def _header(path: Path, file: str) -> Header:
    """Return the header of one file; that it can't be opened is a finding too."""
    try:
        return read_header(path, file)
    except PermissionError:
        raise
    except (OSError, ValueError) as why:
        # ValueError: a name that no file can have.
        reason = getattr(why, "strerror", None) or "no name of a file"
        found = f"it can't be read: {reason}"
        return Header(file, findings=[error(file, None, "a file", found, COPY_AGAIN)])


def _weight_files(path: Path) -> list[str]:
    """Return the safetensors files here, and in folders of ranks such as `mp_rank_00`."""
    found = [*path.glob("*.safetensors"), *path.glob("*rank*/*.safetensors")]
    names = sorted(file.relative_to(path).as_posix() for file in found)
    # The same weights once more in their maker's own format, which hosts leave alone.
    others = [name for name in names if not name.startswith("consolidated")]
    return others or names


def _ranks(files: list[str]) -> dict[int, dict[int, list[str]]]:
    """Return the files by pipeline stage and rank; empty where names tell of no rank."""
    ranks: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        if rank := _RANK.search(file):
            stage = _STAGE.search(file)
            ranks[int(stage[1]) if stage else 0][int(rank[1])].append(file)
    return {stage: dict(of_stage) for stage, of_stage in ranks.items()}


def _indexed(folder: Folder, files: list[str]) -> list[str]:
    """Return the files that the index names, which are those that hosts load; else all."""
    raw = folder.json(INDEX)
    if raw is None:
        return files
    index = raw.get("weight_map")
    named = isinstance(index, dict) and all(isinstance(file, str) for file in index.values())
    if not index or not named:
        folder.findings.append(
            error(INDEX, None, "`weight_map`, tensor by tensor", "none", COPY_AGAIN)
        )
        return files
    folder.index = index
    wanted: dict[str, int] = defaultdict(int)
    for file in index.values():
        wanted[file] += 1
    there = []
    for file, tensors in sorted(wanted.items()):
        if problem := _not_there(folder.path, file):
            own = "the index that belongs to these files"
            folder.findings.append(
                error(
                    INDEX,
                    None,
                    f"the file {file} with {tensors:,} of its tensors",
                    problem,
                    f"copy {own}"
                    if problem == _OUTSIDE
                    else f"copy {file} into the folder, or {own}",
                )
            )
        else:
            there.append(file)
    return there


def _not_there(path: Path, file: str) -> str | None:
    """Say why a file that the index names is not to be opened; None: it is.

    Symbolic links are followed wherever they lead: folders of the Hugging Face cache are made of
    them. The index itself has no reason to name anything outside.
    """
    name = PurePosixPath(file)
    if name.is_absolute() or ".." in name.parts:
        return _OUTSIDE
    try:
        there = (path / file).is_symlink() or (path / file).exists()
    except PermissionError:
        raise
    except OSError as why:
        return why.strerror
    return None if there else "no such file"


def _parts_missing(files: list[str]) -> list[Finding]:
    """Find numbered parts, as in `-00001-of-00003`, that are not there."""
    there: dict[tuple[str, int], set[int]] = defaultdict(set)
    for file in files:
        if part := _PART.search(file):
            there[file[: part.start()], int(part[2])].add(int(part[1]))
    return [
        error(
            None,
            None,
            f"{total} parts of {stem}",
            f"without {_without(parts, total)}",
            "copy the missing parts into the folder",
        )
        for (stem, total), parts in sorted(there.items())
        if len(parts) < total
    ]


def _without(parts: set[int], total: int) -> str:
    """Name the first parts that are not there, and say how many more there are."""
    shown = list(islice((n for n in range(1, total + 1) if n not in parts), _SHOWN))
    more = total - sum(1 <= n <= total for n in parts) - len(shown)
    return ", ".join(map(str, shown)) + (f" and {more:,} more" if more else "")
