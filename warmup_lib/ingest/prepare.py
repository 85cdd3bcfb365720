"""From an understood request to the row that is stored: identities first, then redaction."""

from __future__ import annotations

from typing import Any

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.ingest.logrow import Dialect, LogRow
from warmup_lib.ingest.outcome import Kept, Quarantined, Raw, Reason, Rejected
from warmup_lib.ingest.redact import dump_redacted, redact
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import DIMENSION_FIELDS, Keys, Request, check_tenant
from warmup_lib.messages import BadMessages
from warmup_lib.tables import REQUESTS

COLUMNS = tuple(REQUESTS.schema.names)


class Preparer:
    """Turns the rows of one file into rows to store.

    Args:
        dialect: Format of the file.
        source: Digest of the file.
        clock: Reader of its timestamps.
        config: Settings, for the zone in which a day begins.
        keys: Builder of the identities.
    """

    def __init__(
        self, dialect: Dialect, source: str, clock: Clock, config: Config, keys: Keys
    ) -> None:
        self._dialect = dialect
        self._source = source
        self._clock = clock
        self._config = config
        self._keys = keys

    def prepare(self, raw: Raw) -> Kept | Quarantined:
        """Return what becomes of a row."""
        place = Raw(raw.position, raw.offset, raw.size)
        try:
            if raw.reason is not None:
                raise Rejected(raw.reason)
            if not isinstance(raw.value, dict):
                raise Rejected(Reason.NOT_AN_OBJECT)
            return self._kept(self._dialect.parse(raw.value, self._clock), place)
        except Rejected as verdict:
            reason, field = verdict.reason, verdict.field
        except BadMessages as bad:
            reason, field = Reason(bad.reason), bad.field
        except (RecursionError, InputDataError):  # nested too deep for an identity
            reason, field = Reason.TOO_DEEP, None
        return Quarantined(raw.position, raw.offset, raw.size, reason, field)

    def _kept(self, row: LogRow, place: Raw) -> Kept:
        try:
            row.tenant = check_tenant(row.tenant)
        except InputDataError:
            raise Rejected(Reason.BAD_TENANT, "tenant") from None
        identity = self._keys.identity(
            Request(
                tenant=row.tenant,
                model=row.model,
                prompt=row.prompt,
                system_prompt=row.system_prompt,
                history=row.history,
                tools=row.tools,
                model_revision=row.model_revision,
                adapter=row.adapter,
                params=row.params,
                dimensions=self._keys.dimensions_in(
                    {name: getattr(row, name) for name in _DIMENSIONS}
                ),
            )
        )
        texts, redacted = _clean(row)
        values: dict[str, Any] = {
            **{name: getattr(row, name) for name in _AS_IS},
            **texts,
            "redacted": redacted,
            "text_digest": identity.text,
            "context_digest": identity.context,
            "response_digest": identity.response,
            "head_digest": identity.head,
            "dialect": self._dialect.name,
            "source": self._source,
            "position": place.position,
        }
        return Kept(
            place=place,
            day=self._config.local_day(row.ts),
            tenant=row.tenant,
            request_id=row.request_id,
            response_digest=identity.response,
            values=tuple(values[name] for name in COLUMNS),
            weight=_ROW_WEIGHT + sum(len(t) for t in texts.values() if t is not None),
            redacted=redacted,
            warmup=row.warmup,
        )


_ROW_WEIGHT = 2048
"""About what a row takes in memory beside its long texts, in bytes."""

_DIMENSIONS = (*DIMENSION_FIELDS, "extra", "params")
_JSON = ("history", "tools", "params", "extra")
_TEXTS = (
    "prompt", "system_prompt", "response", "user_segment", "session_id", "locale", "intent",
    "ab_arm", "cache_control", "served_from",
)  # fmt: skip
_WARMED = frozenset({"prompt", "system_prompt", "response", "history", "tools", "params"})
"""What a warmed entry is made of: one that lacks a piece would not be what is asked for."""

_DIGESTS = {"text_digest", "context_digest", "response_digest", "head_digest"}
_AS_IS = tuple(
    name
    for name in COLUMNS
    if name not in {*_JSON, *_TEXTS, *_DIGESTS, "redacted", "dialect", "source", "position"}
)


def _clean(row: LogRow) -> tuple[dict[str, str | None], bool]:
    """Return the texts to store, and whether a piece of what would be warmed was removed."""
    texts: dict[str, str | None] = {}
    redacted = row.incomplete
    for name in _TEXTS:
        text = getattr(row, name)
        texts[name] = text and redact(text)
        redacted |= name in _WARMED and texts[name] != text
    for name in _JSON:
        value = getattr(row, name)
        if not value:
            texts[name] = None
            continue
        texts[name], changed = dump_redacted(value, sort=name == "params")
        redacted |= name in _WARMED and changed
    return texts, redacted
