"""The layers in the order in which they are warmed. A new layer is one module and one line here."""

from __future__ import annotations

from warmup_lib.config import Config
from warmup_lib.layers.adapters import Adapters
from warmup_lib.layers.base import Layer
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.layers.prefixes import Prefixes
from warmup_lib.layers.responses import Responses
from warmup_lib.layers.retrieval import Retrieval
from warmup_lib.layers.weights import Weights

LAYERS: dict[str, Layer] = {
    "weights": Weights(),
    "adapters": Adapters(),
    "embeddings": Embeddings(),
    "responses": Responses(),
    "retrieval": Retrieval(),
    "prefixes": Prefixes(),  # last: it lives for minutes, and generated answers would age it
}


def enabled(config: Config) -> list[Layer]:
    """Return the layers that the settings switch on, in warming order."""
    on = config.layers.switched_on()
    return [layer for name, layer in LAYERS.items() if name in on]
