"""The stage that reads the user's files as they are now: documents -> chunks, lists -> listed."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from warmup_lib.config import Config, key_secret
from warmup_lib.documents.lists import Listing, ReadList, lists, read_list
from warmup_lib.documents.reading import Bad, Chunk, Reason, read_documents
from warmup_lib.documents.tenants import own_tenant
from warmup_lib.documents.unused import Unused
from warmup_lib.embed.encoder import MAX_CHARS
from warmup_lib.ingest.redact import redact
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import CHUNKS, LISTED

_LOGGED = "SELECT DISTINCT tenant, model FROM requests WHERE day <= CAST($day AS DATE)"


def run(lake: Lake, day: str, config: Config, progress: Progress = silent) -> StageReport:
    """Replace the `chunks` and `listed` partitions of `day`; without files for one, drop it.

    A document that can't be used is left out with its reason in a note, and so is a chunk; of two
    chunks of a tenant with one id the first one counts. A chunk's identity is that of its redacted
    text, which is what is embedded. What of a list is not used is told too.

    Memory: the chunks and the lists.

    Raises:
        ConfigError: A configured folder or file is not there, or the lake was filled under
            another secret.
        InputDataError: A tenant is empty or a wildcard, or a line of a list can't be used.
    """
    started = time.perf_counter()
    documents, named = config.layers.retrieval.documents, lists(config)
    read, each = _Read(), list[tuple[Listing, ReadList]]()
    if documents or named:
        keys = Keys(key_secret(config))
        lake.pin({"secret id": keys.secret_id}, record=False)
        for done, one in enumerate(documents):
            progress("documents", done, len(documents))
            tenant = own_tenant(one.tenant)
            for found in read_documents(one.path):
                read.take(tenant, found, keys)
        progress("documents", len(documents), len(documents))
        each = [(one, read_list(one, config, keys)) for one in named]
    listed = [row for _, one in each for row in one.rows]
    unused = Unused(each, *(_logged(lake, day) if listed else ((), ())))
    chunks = pa.Table.from_pylist(list(read.rows.values()), schema=CHUNKS.schema)
    _replace(lake, "chunks", day, chunks if documents else None, config)
    requests = pa.Table.from_pylist(listed, schema=LISTED.schema)
    _replace(lake, "listed", day, requests if named else None, config)
    return StageReport(
        "documents",
        rows_in=len(read.rows) + sum(map(len, read.bad.values())) + len(listed),
        rows_out=chunks.num_rows + len(listed),
        seconds=time.perf_counter() - started,
        notes=(*read.notes(), *unused.notes()),
        facts=read.facts()
        | {
            "listed": dict(Counter(row["source"] for row in listed)),
            "unused": unused.facts(),
        },
    )


def _logged(lake: Lake, day: str) -> tuple[set[str], set[str]]:
    """Return tenants and models of all that was logged up to a day."""
    connection = lake.sql()
    try:
        pairs = connection.sql(_LOGGED, params={"day": day}).fetchall()
    finally:
        connection.close()
    return {tenant for tenant, _ in pairs}, {model for _, model in pairs}


def _replace(lake: Lake, table: str, day: str, rows: pa.Table | None, config: Config) -> None:
    if rows is None:
        lake.drop(table, {"day": day})
    else:
        lake.replace(table, {"day": day}, rows, {"config": config.digest()})


@dataclass
class _Read:
    """What was read so far.

    Attributes:
        rows: Rows of `chunks`, by tenant and chunk id.
        bad: Where things are that can't be used, by reason.
        redacted: Chunks in which something was redacted.
        overlong: Chunks that are longer than any encoder reads.
    """

    rows: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    bad: dict[Reason, list[str]] = field(default_factory=lambda: defaultdict(list))
    redacted: int = 0
    overlong: int = 0

    def take(self, tenant: str, found: Chunk | Bad, keys: Keys) -> None:
        """Add a chunk, or a reason why there is none."""
        if isinstance(found, Bad):
            self.bad[found.reason].append(found.place)
            return
        if (tenant, found.chunk_id) in self.rows:
            self.bad[Reason.DOUBLED_ID].append(found.document)
            return
        text = redact(found.text)
        self.redacted += text != found.text
        self.overlong += len(text) > MAX_CHARS
        self.rows[tenant, found.chunk_id] = {
            "tenant": tenant,
            "chunk_id": found.chunk_id,
            "chunk_digest": keys.chunk_digest(found.chunk_id),
            "document": found.document,
            "text": text,
            "text_digest": keys.text_digest(text),
        }

    def facts(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "chunks": len(self.rows),
            "documents": len({(tenant, r["document"]) for (tenant, _), r in self.rows.items()}),
            "tenants": len({tenant for tenant, _ in self.rows}),
            "redacted": self.redacted,
            "overlong": self.overlong,
            "bad": {reason.value: len(places) for reason, places in sorted(self.bad.items())},
        }

    def notes(self) -> tuple[str, ...]:
        """Return what was left out, each reason with the first place where it was met."""
        notes = [
            f"documents left out, {reason.value}: {len(places)} (first: {places[0]})"
            for reason, places in sorted(self.bad.items())
        ]
        if self.overlong:
            notes.append(
                f"chunks longer than {MAX_CHARS:,} characters, which get no vector: {self.overlong}"
            )
        return tuple(notes)
