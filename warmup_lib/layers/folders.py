"""Which folder holds an adapter's weights, and the hash of what lies there now."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from warmup_lib.config import Config, warmup_home
from warmup_lib.errors import InputDataError

_CONFIG = "adapter_config.json"
_READ_AT_ONCE = 1 << 20

Mark = tuple[str, int, int, int, int]
"""A file as the file system knows it: name, inode, size, and when content and inode changed."""


def adapter_folders(config: Config) -> dict[str, str]:
    """Return adapter in the log -> its folder, absolute, as it is named to the hosts.

    With the embedded stack these are its composed adapters, but for those that the settings name.
    """
    given = config.layers.adapters.folders
    folders = {name: str(Path(folder).expanduser().absolute()) for name, folder in given.items()}
    if config.targets != "embedded":
        return folders
    from warmup_lib import stack

    composed = stack.adapter_folders(warmup_home())
    return {name: str(folder) for name, folder in composed.items()} | folders


def content_hash(folder: str) -> str:
    """Return the SHA-256, in hex, of an adapter's settings (canonical JSON) and weights.

    A file that the file system says is unchanged is not read twice in one process.

    Raises:
        InputDataError: The folder holds no adapter that can be read.
    """
    try:
        return _hashed(folder, _marks(folder))
    except (OSError, ValueError):
        raise InputDataError(
            f"no adapter can be read in this folder: it needs {_CONFIG} and *.safetensors"
        ) from None


def size_of(folder: str) -> int:
    """Return the bytes of an adapter's files.

    Raises:
        OSError: They can't be looked at.
    """
    return sum(size for _, _, size, _, _ in _marks(folder))


def _marks(folder: str) -> tuple[Mark, ...]:
    place = Path(folder)
    weights = sorted(place.glob("*.safetensors"))
    if not weights:
        raise FileNotFoundError(folder)
    stats = [(file.name, file.stat()) for file in (place / _CONFIG, *weights)]
    return tuple((n, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for n, s in stats)


@lru_cache(maxsize=1024)
def _hashed(folder: str, marks: tuple[Mark, ...]) -> str:
    place = Path(folder)
    settings = json.loads((place / _CONFIG).read_bytes())
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, _, size, _, _ in marks[1:]:
        digest.update(f"\0{name}\0{size}\0".encode())
        with (place / name).open("rb") as weights:
            while piece := weights.read(_READ_AT_ONCE):
                digest.update(piece)
    return digest.hexdigest()
