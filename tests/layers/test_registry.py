"""The registry holds every layer under its own name, in warming order."""

from __future__ import annotations

from warmup_lib.config import Config, LayerConfig, LayersConfig
from warmup_lib.layers.registry import LAYERS, enabled


def test_order_and_names() -> None:
    assert list(LAYERS) == ["embeddings", "responses", "prefixes"]
    assert all(layer.name == name for name, layer in LAYERS.items())
    assert [layer.target_kind for layer in LAYERS.values()] == ["redis", "redis", "host"]
    assert set(LAYERS) == set(LayersConfig.model_fields)


def test_switched_off() -> None:
    config = Config(layers=LayersConfig(responses=LayersConfig().responses))
    assert [layer.name for layer in enabled(config)] == list(LAYERS)
    off = Config(layers=LayersConfig(embeddings=LayerConfig(enabled=False)))
    assert [layer.name for layer in enabled(off)] == ["responses", "prefixes"]
