"""Turns the GGUF of SmolLM2 into the folder that vLLM serves; run by the model host's own Python.

    python -I build_model.py MODEL.gguf OUTPUT_FOLDER

It imports nothing of this package: that Python does not have it.
"""

from __future__ import annotations

import sys
from pathlib import Path


def build(gguf: Path, output: Path) -> None:
    """Write weights in bfloat16 safetensors, the tokenizer and its chat template.

    Raises:
        ValueError: The GGUF carries no chat template, without which chat requests would be refused.
    """
    import torch
    from transformers import (  # type: ignore[attr-defined,unused-ignore]
        AutoTokenizer,
        GgufConfig,
        LlamaForCausalLM,
    )

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    if not tokenizer.chat_template:
        raise ValueError(f"{gguf.name} carries no chat template")
    read = LlamaForCausalLM.from_pretrained(
        str(gguf.parent),
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    # What was loaded from GGUF refuses to be saved; a fresh object with its weights does not.
    fresh = LlamaForCausalLM(read.config).bfloat16()
    fresh.load_state_dict(read.state_dict())
    fresh.save_pretrained(output)
    tokenizer.save_pretrained(output)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
