"""What an application or gateway imports to find what is warm: `Reader`, and what it gives back.

It stands on redis, the key contract and OpenTelemetry's API; the encoder is handed in.
"""

from __future__ import annotations

from warmup_lib.reader.cache import Cache, Encode
from warmup_lib.reader.client import Reader
from warmup_lib.reader.found import Computed, Found
from warmup_lib.reader.mirror import Mirror
from warmup_lib.reader.openai import Heard, request_of
from warmup_lib.reader.record import log_row
from warmup_lib.reader.threads import SyncReader

__all__ = [
    "Cache",
    "Computed",
    "Encode",
    "Found",
    "Heard",
    "Mirror",
    "Reader",
    "SyncReader",
    "log_row",
    "request_of",
]
