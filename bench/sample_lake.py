"""Makes a lake of the composed sample log, for benches that need one."""

from __future__ import annotations

from pathlib import Path

from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib import pipeline
from warmup_lib.config import load_config
from warmup_lib.lake import Lake


def sample_lake(folder: Path, seed: int) -> Lake:
    """Generate the log of a seed, at full scale, and take all its days in; keep what is there."""
    log = folder / f"log-{seed}"
    if not (log / "manifest.json").exists():
        generate(log, Shipped(), seed=seed)
    config = load_config(None, lake=str(folder / f"lake-{seed}"))
    lake = pipeline.open_lake(config)
    files = sorted(log.glob("requests-*.jsonl.gz"))
    if len(lake.days("requests")) < len(files):
        pipeline.ingest(config, files, "jsonl")
    return lake
