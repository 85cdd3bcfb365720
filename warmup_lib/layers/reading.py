"""How the configured cache is opened for a reader: the command line, or a gateway of one's own."""

from __future__ import annotations

from collections.abc import Mapping

from warmup_lib.config import Config
from warmup_lib.embed.encoder import Encoder
from warmup_lib.embed.opening import open_encoder
from warmup_lib.keys import Keys
from warmup_lib.layers.adapters import served_name
from warmup_lib.layers.folders import adapter_folders, content_hash
from warmup_lib.reader import Cache, Encode
from warmup_lib.targets.open import redis_url


def open_cache(
    config: Config, keys: Keys, adapters: Mapping[str, str] | None = None, name: str | None = None
) -> Cache:
    """Return the cache that a plan of these settings warms; the encoder is loaded.

    Args:
        config: The settings.
        keys: The key builder.
        adapters: Adapter in the log -> the name under which hosts serve its present weights; None:
            those whose folders are known.
        name: Name of the Redis; None: the first one.

    Raises:
        ConfigError: There is no such Redis, or the encoder can't be opened.
        InputDataError: An adapter's folder can't be read.
    """
    url = redis_url(config, name)
    encoder = open_encoder(config)
    encode = encoding(encoder)
    encode("loaded")  # models load with their first text: no request is to wait for that
    return Cache(
        url,
        keys,
        encoder.fingerprint,
        encoder.dimension,
        encode,
        adapters=present_adapters(config) if adapters is None else adapters,
        threshold=config.encoder.threshold,
        ttl_s=int(config.layers.responses.ttl.total_seconds()),
    )


def present_adapters(config: Config) -> dict[str, str]:
    """Return the adapters whose folders are known, and the names of their present weights.

    Raises:
        InputDataError: A folder can't be read.
    """
    if not config.layers.adapters.enabled:
        return {}
    return {
        name: served_name(name, content_hash(folder))
        for name, folder in adapter_folders(config).items()
    }


def encoding(encoder: Encoder) -> Encode:
    """Return what gives a canonical text its vector, where the encoder reads all of it."""

    def encode(text: str) -> list[float] | None:
        if not text or not encoder.reads_whole([text])[0]:
            return None
        vector: list[float] = encoder.encode([text])[0].tolist()
        return vector

    return encode
