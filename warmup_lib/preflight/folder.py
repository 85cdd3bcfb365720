"""What lies in a model folder: its config, its index, and the headers of the files that count."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.preflight.findings import Finding, error
from warmup_lib.preflight.header import COPY_AGAIN, Header, read_header

CONFIG, INDEX = "config.json", "model.safetensors.index.json"

# vLLM writes model-rank-0-part-0 and model-pp-0-tp-0-part-0, Megatron mp_rank_00 or mp_rank_00_000
# with the pipeline stage last.
_RANK = re.compile(r"(?:^|[-_/])(?:rank|tp)[-_]?(\d+)")
_STAGE = re.compile(r"(?:^|[-_/])(?:pp[-_]?|mp_rank_\d+_)(\d+)")
_PART = re.compile(r"-(\d+)-of-(\d+)\.safetensors$")
_LARGEST_JSON = 64_000_000


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
        if not file.is_file():
            return None
        if file.stat().st_size <= _LARGEST_JSON:
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
        InputDataError: It is no folder, or holds no model.
    """
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
        header = read_header(path, file)
        folder.headers[file] = header
        folder.bytes_read += header.bytes_read
        folder.findings += header.findings
    if not folder.ranks:
        folder.findings += _parts_missing(files)
    return folder


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
    if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
        folder.findings.append(
            error(INDEX, None, "`weight_map`, tensor by tensor", "none", COPY_AGAIN)
        )
        return files
    folder.index = index
    wanted: dict[str, int] = defaultdict(int)
    for file in index.values():
        wanted[file] += 1
    there = [file for file in sorted(wanted) if (folder.path / file).is_file()]
    for file, tensors in sorted(wanted.items()):
        if file not in there:
            folder.findings.append(
                error(
                    INDEX,
                    None,
                    f"the file {file} with {tensors:,} of its tensors",
                    "no such file",
                    f"copy {file} into the folder, or the index that belongs to these files",
                )
            )
    return there


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
            f"without {', '.join(str(n) for n in range(1, total + 1) if n not in parts)}",
            "copy the missing parts into the folder",
        )
        for (stem, total), parts in sorted(there.items())
        if len(parts) < total
    ]
