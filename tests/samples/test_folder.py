from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from samples.folder import Folder
from samples.generate import generate
from samples.writing import tokens

pytestmark = pytest.mark.realdata


def test_real_questions_go_through_the_same_machinery(real_data: Path, tmp_path: Path) -> None:
    manifest = generate(tmp_path, Folder(real_data), scale=0.02, days=3)
    assert manifest["source"] == "folder"
    assert 200 < manifest["counts"]["rows"] < 500
    assert {"en", "de", "it", "zh", "ja"} <= set(manifest["counts"]["locale"])
    with (real_data / "banking77" / "train.csv").open(encoding="utf-8", newline="") as file:
        real = {row["text"].strip().casefold() for row in csv.DictReader(file)}
    asked = [
        json.loads(line)
        for path in tmp_path.glob("requests-*.jsonl.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    bank = [r for r in asked if r["tenant"] == "acme-bank" and r.get("session_id")]
    known = [r["prompt"].casefold() in real for r in bank if not r["messages"]]
    assert np.mean(known) > 0.5
    written = "".join(
        p.read_text(encoding="utf-8") for p in (tmp_path / "docs" / "codeforge").glob("*.md")
    )
    used = {chunk for r in asked for chunk in r.get("chunk_ids") or ()}
    assert used
    assert all(f"<!-- {chunk} -->" in written for chunk in used)


def test_heads_are_real_system_prompts_of_the_wanted_lengths(real_data: Path) -> None:
    lengths = {
        t.name: tokens(t.head(next(iter(t.areas)), next(iter(t.locales)), None, 1, ""), "en")
        for t in Folder(real_data).tenants()
    }
    assert min(lengths[n] for n in ("acme-bank", "nordwind-travel", "lanting-shop")) > 1_200
    assert max(lengths.values()) < 3_000
    assert max(lengths["codeforge"], lengths["hearth-home"]) < 400


def test_buttons_are_one_a_label_and_language(real_data: Path) -> None:
    source = Folder(real_data)
    bank = next(t for t in source.tenants() if t.name == "acme-bank")
    pool = source.pool(bank, 3_000, np.random.default_rng(1))
    assert len(pool) == len({prompt.text for prompt in pool}) == 3_000
    assert sum(prompt.button for prompt in pool) == len(bank.intents) == 77
    assert all(prompt.button for prompt in pool[:77])
