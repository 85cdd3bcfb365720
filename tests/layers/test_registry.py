"""The registry holds every layer under its own name, in warming order."""

from __future__ import annotations

from warmup_lib.config import Config, EmbeddingsConfig, LayersConfig, WeightsConfig
from warmup_lib.layers.registry import LAYERS, enabled


def test_order_and_names() -> None:
    kinds = {name: layer.target_kind for name, layer in LAYERS.items()}
    assert list(kinds.items()) == [
        ("weights", "host"),
        ("adapters", "host"),
        ("embeddings", "redis"),
        ("responses", "redis"),
        ("retrieval", "redis"),
        ("prefixes", "host"),
    ]
    assert all(layer.name == name for name, layer in LAYERS.items())
    assert set(LAYERS) == set(LayersConfig.model_fields)


def test_what_a_layer_needs_is_warmed_before_it() -> None:
    order = list(LAYERS)
    for layer in LAYERS.values():
        assert all(order.index(needed) < order.index(layer.name) for needed in layer.needs)


def test_switched_off() -> None:
    without_documents = [name for name in LAYERS if name != "retrieval"]
    assert [layer.name for layer in enabled(Config())] == without_documents
    off = Config(
        layers=LayersConfig(
            embeddings=EmbeddingsConfig(enabled=False), weights=WeightsConfig(enabled=False)
        )
    )
    assert [layer.name for layer in enabled(off)] == ["adapters", "responses", "prefixes"]
