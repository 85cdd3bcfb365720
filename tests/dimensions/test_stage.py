"""Studies of the lake and of files, with similar texts, and at size."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.dimensions.logs import draw, read, requests
from warmup_lib.config import Config
from warmup_lib.dimensions.report import facts
from warmup_lib.dimensions.similar import latest
from warmup_lib.dimensions.stage import of_days, of_files
from warmup_lib.embed.opening import open_encoder
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.tables import VECTORS

KEYS = Keys(b"s" * 16)


def write(path: Path, *texts: str, **fields: Any) -> Path:
    """Write a request for each text; what follows `->` is its answer."""
    lines = []
    for n, text in enumerate(texts):
        prompt, _, answer = text.partition(" -> ")
        row = {
            "request_id": f"r{n}",
            "ts": 1_773_000_000 + n,
            "tenant": "acme",
            "model": "m",
            "prompt": prompt,
            "response": answer or "yes",
        }
        lines.append(json.dumps(row | {k: v[n % len(v)] for k, v in fields.items()}))
    path.write_text("\n".join(lines))
    return path


def test_similar_texts_share_a_key_where_the_guard_lets_them(tmp_path: Path) -> None:
    config = Config(lake=str(tmp_path / "lake"))
    log = write(
        tmp_path / "log.jsonl",
        "How do I reset my password? -> so",
        "How can I reset my password? -> so",
        "How could I reset my password? -> otherwise",
        "Refund 20 euro to me -> a",
        "Refund 50 euro to me -> b",
    )
    done, similar = of_files([log], Lake(config.lake), config, KEYS, texts=10)
    found = facts(done, similar)["schemes"]["suggested_and_semantic"]
    assert found["requests"] == 5
    assert found["keys"] == 3
    assert (found["judged_hits"], found["wrong_merges"]) == (2, 1)
    assert found["exact_on_the_same"]["keys"] == 5


def test_vectors_and_thresholds_of_the_lake_are_used(tmp_path: Path) -> None:
    config = Config(lake=str(tmp_path / "lake"))
    log = write(tmp_path / "log.jsonl", "pick a colour", "name a river", "write a poem")
    lake = Lake(config.lake)
    encoder = open_encoder(config)
    vector = np.zeros(encoder.dimension, np.float32)
    vector[0] = 1.0
    rows = [
        {"text_digest": KEYS.text_digest(text), "vector": vector}
        for text in ("pick a colour", "name a river")
    ]
    partition = {"encoder": encoder.fingerprint, "day": "2026-03-08"}
    lake.replace("vectors", partition, pa.Table.from_pylist(rows, schema=VECTORS.schema))
    _, similar = of_files([log], lake, config, KEYS, texts=10)
    assert similar is not None
    assert similar.similar.keys == 2


def test_fields_that_are_kept_part_similar_texts(tmp_path: Path) -> None:
    config = Config(lake=str(tmp_path / "lake"))
    texts = [f"How {w} I reset my password? -> {a}" for a in "ab" for w in ("do", "can")]
    log = write(tmp_path / "log.jsonl", *(texts * 12), locale=["de", "de", "en", "en"])
    done, similar = of_files([log], Lake(config.lake), config, KEYS, texts=10)
    assert similar is not None
    assert done.suggested == ("locale",)
    assert (similar.exact.keys, similar.similar.keys) == (4, 2)
    assert (similar.similar.judged, similar.similar.wrong) == (46, 0)


def test_the_latest_stretch_has_so_many_texts() -> None:
    log = read(requests({"question": np.array([5, 1, 2, 1, 3, 2])}, np.zeros(6, np.int64)))
    assert [latest(log, n).requests for n in (1, 2, 3, 4)] == [1, 2, 5, 6]
    assert latest(log, 9) is log


def test_only_the_days_asked_for_count(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    drawn = draw(0, 500, 10)
    for day in ("2026-03-09", "2026-03-10"):
        lake.replace("requests", {"day": day}, requests(drawn, drawn["user_segment"]))
    config = Config(lake=str(tmp_path))
    one, _ = of_days(lake, ["2026-03-10"], config)
    two, _ = of_days(lake, ["2026-03-09", "2026-03-10"], config)
    assert (one.log.requests, two.log.requests) == (500, 1000)


def test_a_field_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    config = Config(lake=str(tmp_path / "lake"))
    log = write(tmp_path / "log.jsonl", "a", "b", locale=["de", "en"])
    with pytest.raises(InputDataError, match=r"no such field: colour; there are locale"):
        of_files([log], Lake(config.lake), config, KEYS, without=["colour"])
    done, _ = of_files([log], Lake(config.lake), config, KEYS, without=["locale"])
    assert "locale" not in done.log.values


@pytest.mark.slow
def test_a_million_requests_take_well_under_a_minute(tmp_path: Path) -> None:
    rows = 1_000_000
    drawn = draw(1, rows)
    drawn["question"] = np.minimum(
        (np.random.default_rng(0).pareto(0.8, rows) * 500).astype(np.int64), 400_000
    )
    lake = Lake(str(tmp_path))
    table = requests(drawn, drawn["user_segment"])
    lake.replace("requests", {"day": "2026-03-09"}, table)
    started = time.perf_counter()
    done, _ = of_days(lake, ["2026-03-09"], Config(lake=str(tmp_path)))
    found = facts(done, None)
    assert time.perf_counter() - started < 40
    assert found["suggested"] == ["user_segment"]
    assert found["schemes"]["suggested"]["wrong_merges"] == 0
