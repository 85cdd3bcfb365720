"""vectors out of the prompts of a day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from warmup_lib.config import Config
from warmup_lib.embed import stage
from warmup_lib.embed.opening import open_encoder
from warmup_lib.embed.stage import run
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.errors import ConfigError, InputDataError
from warmup_lib.lake import Lake
from warmup_lib.tables import CHUNKS, LISTED

ONE, TWO, THREE = "2026-03-12", "2026-03-13", "2026-03-14"
Store = Callable[..., Lake]


@pytest.fixture(scope="module")
def config(tiny_model: Callable[..., Path]) -> Config:
    return Config.model_validate({"encoder": {"name": str(tiny_model(1)), "batch_size": 2}})


def content(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in (root / "vectors").rglob("*.*")}


def counts(facts: dict[str, object]) -> tuple[object, ...]:
    return tuple(facts[k] for k in ("texts", "embedded", "reused", "unreadable"))


def test_a_text_is_encoded_once_whatever_its_case_day_or_number_of_prompts(
    tmp_path: Path, config: Config, store_prompts: Store, text_digest: Callable[[str], str]
) -> None:
    lake = store_prompts(tmp_path, ONE, "lost card", "Lost  CARD", "refund")
    first = run(lake, ONE, config)
    assert counts(first.facts) == (2, 2, 0, 0)
    assert (first.rows_in, first.rows_out) == (2, 2)
    store_prompts(tmp_path, TWO, "lost card", "weather", "when refund")
    second = run(lake, TWO, config)
    assert counts(second.facts) == (3, 2, 1, 0)
    encoder = open_encoder(config)
    assert first.facts["encoder"] == encoder.fingerprint
    texts = ["lost card", "refund", "weather", "when refund"]
    stored = LakeVectors(lake, encoder.fingerprint).matrix([text_digest(t) for t in texts])
    np.testing.assert_allclose(stored, encoder.encode(texts), atol=1e-6)


def test_what_a_list_names_gets_a_vector_too(
    tmp_path: Path, config: Config, store_prompts: Store, text_digest: Callable[[str], str]
) -> None:
    lake = store_prompts(tmp_path, ONE, "lost card")
    rows = [
        {"source": "pinned", "text": text, "text_digest": text and text_digest(text)}
        for text in ("lost card", "weather", None)  # the last one names a head alone
    ]
    columns = {f.name: [row.get(f.name) for row in rows] for f in LISTED.schema}
    lake.replace("listed", {"day": ONE}, pa.table(columns, schema=LISTED.schema))
    facts = run(lake, ONE, config).facts
    assert counts(facts) == (2, 2, 0, 0)
    found = LakeVectors(lake, str(facts["encoder"])).get([text_digest("weather")])
    assert len(found) == 1


def test_a_rerun_embeds_nothing_and_changes_no_byte(
    tmp_path: Path, config: Config, store_prompts: Store
) -> None:
    lake = store_prompts(tmp_path, ONE, "lost card", "refund", "weather")
    run(lake, ONE, config)
    before = content(tmp_path)
    assert counts(run(lake, ONE, config).facts) == (3, 0, 3, 0)
    assert content(tmp_path) == before


def test_the_same_texts_give_the_same_bytes_in_any_order(
    tmp_path: Path, config: Config, store_prompts: Store
) -> None:
    texts = ["lost card", "refund", "weather", "when my card", "退款"]
    for name, order in (("one", texts), ("two", texts[::-1])):
        run(store_prompts(tmp_path / name, ONE, *order), ONE, config)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_rebuilding_a_day_keeps_what_it_has_and_adds_what_is_new(
    tmp_path: Path, config: Config, store_prompts: Store, text_digest: Callable[[str], str]
) -> None:
    lake = store_prompts(tmp_path, ONE, "lost card", "refund")
    run(lake, ONE, config)
    store_prompts(tmp_path, ONE, "refund", "weather")
    report = run(lake, ONE, config)
    assert counts(report.facts) == (2, 1, 1, 0)
    assert report.rows_out == 3
    digests = [text_digest(t) for t in ("lost card", "refund", "weather")]
    assert len(LakeVectors(lake, report.facts["encoder"]).get(digests)) == 3


def test_another_encoder_of_the_same_dimension_starts_from_nothing(
    tmp_path: Path,
    config: Config,
    store_prompts: Store,
    tiny_model: Callable[..., Path],
    text_digest: Callable[[str], str],
) -> None:
    other = Config.model_validate({"encoder": {"name": str(tiny_model(2))}})
    lake = store_prompts(tmp_path, ONE, "lost card", "refund")
    one = run(lake, ONE, config).facts
    two = run(lake, ONE, other).facts
    assert (one["dimension"], counts(one)) == (two["dimension"], counts(two)) == (8, (2, 2, 0, 0))
    digest = text_digest("lost card")
    vectors = [LakeVectors(lake, f["encoder"]).get([digest])[digest] for f in (one, two)]
    assert abs(float(vectors[0] @ vectors[1])) < 0.9
    np.testing.assert_allclose(vectors[1], open_encoder(other).encode(["lost card"])[0], atol=1e-6)


def test_empty_and_overlong_texts_have_no_vector_and_are_counted(
    tmp_path: Path, config: Config, store_prompts: Store
) -> None:
    lake = store_prompts(tmp_path, ONE, "card", "", "x" * 20_001, " \n")
    report = run(lake, ONE, config)
    # The empty text and the blank one have one canonical form, so one digest.
    assert counts(report.facts) == (3, 1, 0, 2)
    assert report.notes == (
        "texts that are empty or longer than the encoder reads, and so have no vector and are "
        "matched exactly only: 2",
    )
    assert counts(run(lake, ONE, config).facts) == (3, 0, 1, 2)


def test_parts_are_stored_as_they_are_made_so_a_killed_run_goes_on(
    tmp_path: Path, config: Config, store_prompts: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_PART", 2)
    lake = store_prompts(tmp_path, ONE, "lost", "refund", "weather", "card", "when")

    def killed(_what: str, done: int, _total: int | None) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(lake, ONE, config, killed)
    report = run(lake, ONE, config)
    assert counts(report.facts) == (5, 3, 2, 0)
    assert report.rows_out == 5


def test_progress_counts_the_texts_to_embed(
    tmp_path: Path, config: Config, store_prompts: Store
) -> None:
    seen: list[tuple[str, int, int | None]] = []
    lake = store_prompts(tmp_path, ONE, "lost", "refund", "weather")
    run(lake, ONE, config, lambda what, done, total: seen.append((what, done, total)))
    assert seen == [("embed", 0, 3), ("embed", 2, 3), ("embed", 3, 3)]


def test_a_broken_encoder_is_refused_before_anything_is_stored(
    tmp_path: Path, store_prompts: Store, tiny_model: Callable[..., Path]
) -> None:
    broken = Config.model_validate({"encoder": {"name": str(tiny_model(1, zero=True))}})
    words = ["lost", "refund", "weather", "card", "when", "my", "退款", "my card"]
    lake = store_prompts(tmp_path, ONE, *words)
    with pytest.raises(ConfigError, match="same vector"):
        run(lake, ONE, broken)
    assert LakeVectors(lake, open_encoder(broken).fingerprint).get(["a"]) == {}
    assert not list(tmp_path.rglob("vectors/*/*/*.parquet"))


def test_a_day_that_was_not_distilled_is_refused(tmp_path: Path, config: Config) -> None:
    with pytest.raises(InputDataError, match="run `distil`"):
        run(Lake(str(tmp_path)), THREE, config)


def test_chunks_of_the_day_are_embedded_with_its_prompts_and_a_changed_one_alone_again(
    tmp_path: Path, config: Config, store_prompts: Store, text_digest: Callable[[str], str]
) -> None:
    def store_chunks(day: str, *texts: str) -> None:
        rows = [
            {"tenant": "acme", "chunk_id": t, "chunk_digest": t, "document": "d"}
            | {"text": t, "text_digest": text_digest(t)}
            for t in texts
        ]
        lake.replace("chunks", {"day": day}, pa.Table.from_pylist(rows, CHUNKS.schema))

    lake = store_prompts(tmp_path, ONE, "lost card", "refund")
    store_chunks(ONE, "lost card", "my card", "weather")
    first = run(lake, ONE, config).facts
    assert (counts(first), first["chunk_texts"]) == ((4, 4, 0, 0), 3)
    store_prompts(tmp_path, TWO, "lost card", "refund")
    store_chunks(TWO, "lost card", "my refund", "weather")
    second = run(lake, TWO, config).facts
    assert (counts(second), second["chunk_texts"]) == ((4, 1, 3, 0), 3)
    assert text_digest("my refund") in LakeVectors(lake, second["encoder"]).get(
        [text_digest("my refund")]
    )
