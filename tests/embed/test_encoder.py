"""Opening encoders and telling them apart."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from warmup_lib.config import Config
from warmup_lib.embed.encoder import fingerprint
from warmup_lib.embed.opening import open_encoder
from warmup_lib.errors import ConfigError


def config(name: object) -> Config:
    return Config.model_validate({"encoder": {"name": str(name)}})


def test_a_fingerprint_depends_on_every_fact_and_on_nothing_else() -> None:
    facts = {"name": "a", "weights": "b", "dimension": 8}
    assert fingerprint(**facts) == fingerprint(**dict(reversed(facts.items())))
    assert len(fingerprint(**facts)) == 16
    others = {fingerprint(**{**facts, key: "other"}) for key in facts}
    assert len(others | {fingerprint(**facts)}) == 4


def test_the_default_encoder_needs_no_download() -> None:
    encoder = open_encoder(Config())
    assert encoder.dimension == 512
    assert encoder.fingerprint == open_encoder(Config()).fingerprint


def test_weights_make_the_fingerprint_and_the_place_does_not(
    tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    first = tiny_model(1)
    moved = tmp_path / "elsewhere" / first.name
    shutil.copytree(first, moved)
    one, same = open_encoder(config(first)), open_encoder(config(moved))
    other = open_encoder(config(tiny_model(2)))
    assert one.fingerprint == same.fingerprint
    assert other.dimension == one.dimension == 8
    assert other.fingerprint != one.fingerprint


@pytest.mark.parametrize("name", ["/no/such/folder", "./models/absent"])
def test_a_folder_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="can't be opened"):
        open_encoder(config(name))
