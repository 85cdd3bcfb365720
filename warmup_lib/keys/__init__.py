"""The cache-key contract: canonical forms, identities and keys. Nothing else may build a key.

docs/keys.md publishes it; tests/keys/vectors.json lets a reader in another language check itself.
"""

from __future__ import annotations

from warmup_lib.keys.apart import Parts, take_apart
from warmup_lib.keys.build import FIELDS, KEY_VERSION, Identity, Keys, key_hash
from warmup_lib.keys.params import SAMPLING_DEFAULTS, canonical_params
from warmup_lib.keys.request import (
    DIMENSION_FIELDS,
    FALLBACK_TENANTS,
    Dimension,
    Request,
    check_tenant,
)
from warmup_lib.keys.text import canonical_text, embedding_text

__all__ = [
    "DIMENSION_FIELDS",
    "FALLBACK_TENANTS",
    "FIELDS",
    "KEY_VERSION",
    "SAMPLING_DEFAULTS",
    "Dimension",
    "Identity",
    "Keys",
    "Parts",
    "Request",
    "canonical_params",
    "canonical_text",
    "check_tenant",
    "embedding_text",
    "key_hash",
    "take_apart",
]
