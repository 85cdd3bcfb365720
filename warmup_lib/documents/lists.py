"""Reads the lists of requests that the user has the plan consider, beside what the log asks for.

A list is a file of JSON lines in the canonical form of docs/requests.md, without `request_id` and
`ts`. It is the user's own, so one bad line stops the reading: a list that is warmed in part would
go unnoticed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from typing import Any

import fsspec

from warmup_lib.config import Config
from warmup_lib.documents.tenants import own_tenant
from warmup_lib.errors import ConfigError, InputDataError
from warmup_lib.ingest.dialects.jsonl import FIELDS, Jsonl
from warmup_lib.ingest.lines import read_lines
from warmup_lib.ingest.outcome import Quarantined, Raw, Reason
from warmup_lib.ingest.prepare import COLUMNS, Preparer
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import Keys

_NO_TIME = datetime(2001, 1, 1, tzinfo=UTC)
_FORMAL = {"request_id": "listed", "ts": _NO_TIME}
"""What a log row must have and a listed request has not."""
_ABSENT = "-"
"""Stands for the user text of a row that names a head alone, while it is parsed."""
_HEEDED = {"metadata", "headers", "response_headers", "route", "user_agent"}
"""Fields without a meaning of their own in which marks of requests are looked for."""
_OF_TEXT = ("text", "text_digest", "context_digest", "response_digest", "response")


@dataclass(frozen=True)
class Listing:
    """One list.

    Attributes:
        source: The source of the plan that reads it.
        part: Language or classifier; None: the source has one list.
        path: A file, local or of an object store that fsspec knows; it may be compressed.
        first: Most rows, from its beginning; None: all.
        needs: Fields that this source needs beside tenant and model.
        hottest: Most rows that a plan takes, those of the hottest intents; None: all.
    """

    source: str
    part: str | None
    path: str
    first: int | None
    needs: tuple[str, ...] = ()
    hottest: int | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.source}.{self.part}" if self.part else self.source


@dataclass(frozen=True)
class ReadList:
    """What a list holds.

    Attributes:
        rows: Rows of the `listed` table.
        beyond: How many more there are than the source takes, which are not looked at.
        beyond_from: The line of the first of them.
        strange: Lines with a field that has no meaning.
    """

    rows: Sequence[dict[str, Any]]
    beyond: int = 0
    beyond_from: int = 0
    strange: Sequence[int] = ()


def lists(config: Config) -> list[Listing]:
    """Return the lists of the sources that are switched on."""
    sources = config.plan.sources
    found = []
    if sources.languages.enabled:
        found += [
            Listing("languages", tag, path, sources.languages.sentences, ("prompt",))
            for tag, path in sorted(sources.languages.sets.items())
        ]
    for name in ("output_templates", "pinned"):
        one = getattr(sources, name)
        if one.enabled and one.path:
            found.append(Listing(name, None, one.path, one.limit))
    if sources.few_shot.enabled:
        found += [
            Listing(
                "few_shot",
                classifier,
                path,
                None,
                ("prompt", "intent"),
                hottest=sources.few_shot.limit,
            )
            for classifier, path in sorted(sources.few_shot.classifiers.items())
        ]
    return found


def read_list(of: Listing, config: Config, keys: Keys) -> ReadList:
    """Return a list's rows, the first ones as rows of the `listed` table.

    Raises:
        ConfigError: There is no such file, or no way to it.
        InputDataError: A line can't be used: the message names it and the field at fault.
    """
    preparer = Preparer(Jsonl(), "", Clock(UTC, _NO_TIME), config, keys)
    lines = _lines(of)
    rows, strange = [], []
    known = FIELDS | _HEEDED | {name.removeprefix("extra.") for name in config.dimensions}
    for raw in islice(lines, of.first):
        rows.append(_row(of, raw, preparer))
        if not known.issuperset(raw.value):
            strange.append(raw.position)
    after = next(lines, None)
    if after is None:
        return ReadList(rows, strange=strange)
    return ReadList(rows, 1 + sum(1 for _ in lines), after.position, strange)


def _lines(of: Listing) -> Iterator[Raw]:
    number = 0
    try:
        with fsspec.open(of.path, "rb", compression="infer") as file:
            for number, line in enumerate(file, 1):
                for raw in read_lines(BytesIO(line)):
                    yield replace(raw, position=number)
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigError(f"plan.sources.{of.name}: there is no file '{of.path}'") from None
    except (ValueError, ImportError, OSError, EOFError, zlib.error) as error:
        raise ConfigError(
            f"plan.sources.{of.name}: '{of.path}' can't be read after line {number}: "
            f"{type(error).__name__}"
        ) from None


def _row(of: Listing, raw: Raw, preparer: Preparer) -> dict[str, Any]:
    if raw.reason is not None:
        raise _bad(of, raw.position, raw.reason)
    if not isinstance(raw.value, dict):
        raise _bad(of, raw.position, Reason.NOT_AN_OBJECT)
    given: dict[str, Any] = {**raw.value, **_FORMAL}
    if isinstance(given.get("tenant"), str) and given["tenant"].strip():
        try:
            own_tenant(given["tenant"])
        except InputDataError:
            raise _bad(of, raw.position, Reason.BAD_TENANT, "tenant") from None
    for name in of.needs:
        if not given.get(name) and not (name == "prompt" and given.get("messages")):
            raise _bad(of, raw.position, Reason.MISSING_FIELD, name)
    head_alone = not any(given.get(name) for name in ("prompt", "messages"))
    if head_alone and any(given.get(name) for name in ("system_prompt", "tools")):
        given["prompt"] = _ABSENT
    made = preparer.prepare(replace(raw, value=given))
    if isinstance(made, Quarantined):
        raise _bad(of, raw.position, made.reason, made.field)
    values = dict(zip(COLUMNS, made.values, strict=True))
    row = {
        **values,
        "source": of.source,
        "part": of.part,
        "position": raw.position,
        "text": values["prompt"],
        "history": values["history"] is not None,
        "locale": values["locale"] or (of.part if of.source == "languages" else None),
    }
    return row | dict.fromkeys(_OF_TEXT) if head_alone else row


def _bad(of: Listing, line: int, reason: Reason, field: str | None = None) -> InputDataError:
    about = f" ({field})" if field else ""
    return InputDataError(
        f"plan.sources.{of.name}: line {line} of '{of.path}' can't be used: {reason.value}{about}; "
        "docs/sources.md says what a line holds"
    )
