"""What was asked up to the plan's day: the proof that something is new, or that it is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from warmup_lib.lake import Lake
from warmup_lib.tables import STR

if TYPE_CHECKING:
    import duckdb

Text = tuple[str, str]
"""Tenant, and digest of a text."""

_LETTERS = "regexp_replace(lower(nfc_normalize({})), '[^\\p{{L}}\\p{{M}}]+', '', 'g')"
"""What is left of a text without digits, white space, punctuation and letter case."""

_SEEN = f"""
CREATE TEMP TABLE seen AS
SELECT
    tenant,
    context_digest,
    response_digest,
    text_digest,
    any_value(head_digest) AS head_digest,
    arg_max(text, day) AS text,
    {_LETTERS.format("arg_max(text, day)")} AS letters,
    arg_max(COALESCE(unwarmable, ''), day) AS unwarmable,
    MAX(day) AS last_day
FROM prompts
WHERE day <= CAST($day AS DATE)
GROUP BY tenant, context_digest, response_digest, text_digest
"""

_HEADS = f"""
CREATE TEMP TABLE heads_seen AS
SELECT
    tenant,
    head_digest,
    any_value(template_digest) AS template_digest,
    {_LETTERS.format("COALESCE(any_value(system_prompt), '')")} AS letters,
    arg_max(COALESCE(unwarmable, ''), day) AS unwarmable,
    MAX(day) AS last_day
FROM heads
WHERE day <= CAST($day AS DATE)
GROUP BY tenant, head_digest
"""


class Where(NamedTuple):
    """The context and the head in which something was asked."""

    context: str
    head: str


class Once(NamedTuple):
    """Something that was asked for before.

    Attributes:
        digest: Its identity in the layer's keys.
        text_digest: That of its text.
        unwarmable: Why it must not be warmed; empty: it may.
        last_day: When it was asked for last, ISO date.
    """

    digest: str
    text_digest: str
    unwarmable: str
    last_day: str


class History:
    """The history of a lake up to a day.

    Args:
        lake: The lake.
        day: The plan's last log day, ISO date.
    """

    def __init__(self, lake: Lake, day: str) -> None:
        self._lake = lake
        self._day = day
        self._open: duckdb.DuckDBPyConnection | None = None

    def close(self) -> None:
        """Let go of what was read."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def answers(self, asked: Iterable[Text]) -> dict[Text, Once]:
        """Return those identities, by tenant and response digest, that were asked before."""
        rows = self._join(asked, "seen", "response_digest", "response_digest, text_digest")
        return {(tenant, digest): Once(*rest) for tenant, digest, *rest in rows}

    def contexts(self, asked: Iterable[Text]) -> set[Text]:
        """Return those contexts, by tenant and digest, that were asked before."""
        rows = self._join(asked, "seen", "context_digest", "context_digest, context_digest")
        return {(tenant, digest) for tenant, digest, *_ in rows}

    def heads(self, asked: Iterable[Text]) -> dict[Text, Once]:
        """Return those heads, by tenant and digest, that were sent before."""
        rows = self._join(asked, "heads_seen", "head_digest", "head_digest, head_digest")
        return {(tenant, digest): Once(*rest) for tenant, digest, *rest in rows}

    def of_texts(self, asked: Iterable[Text]) -> dict[Text, list[tuple[Where, Once]]]:
        """Return, by tenant and text digest, where a text was asked last."""
        return self._in_contexts(asked, "text_digest")

    def same_letters(self, texts: Mapping[Text, str]) -> dict[Text, list[tuple[Where, Once]]]:
        """Return where texts were asked that differ only in case, digits, space, punctuation.

        Args:
            texts: Texts by tenant and digest.
        """
        letters = self._letters(texts)
        found = self._in_contexts(set(letters.values()), "letters")
        return {text: found[place] for text, place in letters.items() if place in found}

    def similar_heads(
        self, tenant: str, template_digest: str, system_prompt: str
    ) -> list[tuple[str, Once]]:
        """Return heads of a tenant that differ in moments and ids, or in no letter."""
        [(letters,)] = self._connection.execute(
            f"SELECT {_LETTERS.format('$text')}", {"text": system_prompt}
        ).fetchall()
        rows = self._connection.execute(
            "SELECT template_digest = $template, head_digest, head_digest, unwarmable, "
            "CAST(last_day AS VARCHAR) FROM heads_seen WHERE tenant = $tenant "
            "AND (template_digest = $template OR (letters = $letters AND letters <> '')) "
            "ORDER BY last_day DESC, head_digest",
            {"template": template_digest, "tenant": tenant, "letters": letters},
        ).fetchall()
        return [("template" if same else "letters", Once(*rest)) for same, *rest in rows]

    def texts_of(self, tenant: str) -> list[tuple[str, str]]:
        """Return the digests and texts of a tenant."""
        return self._connection.execute(
            "SELECT text_digest, any_value(text) FROM seen WHERE tenant = $tenant "
            "AND text IS NOT NULL AND unwarmable <> 'redacted' GROUP BY text_digest ORDER BY 1",
            {"tenant": tenant},
        ).fetchall()

    def segments(self) -> set[Text]:
        """Return the tenants and user segments that were seen."""
        rows = self._connection.execute(
            "SELECT DISTINCT tenant, user_segment FROM requests "
            "WHERE day <= CAST($day AS DATE) AND user_segment IS NOT NULL",
            {"day": self._day},
        ).fetchall()
        return {(tenant, segment) for tenant, segment in rows}

    def chunks(self) -> set[Text]:
        """Return the tenants and chunk ids that were retrieved, or that documents hold."""
        rows = self._connection.execute(
            "SELECT tenant, unnest(chunk_ids) FROM prompts WHERE day <= CAST($day AS DATE) "
            "UNION SELECT tenant, chunk_id FROM chunks WHERE day <= CAST($day AS DATE)",
            {"day": self._day},
        ).fetchall()
        return {(tenant, chunk) for tenant, chunk in rows}

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._open is None:
            self._open = self._lake.sql()
            self._open.execute(_SEEN, {"day": self._day})
            self._open.execute(_HEADS, {"day": self._day})
        return self._open

    def _join(
        self, asked: Iterable[Text], table: str, column: str, told: str
    ) -> Sequence[tuple[str, ...]]:
        self._register(asked)
        return self._connection.execute(
            f"SELECT tenant, {column}, {told}, unwarmable, CAST(last_day AS VARCHAR) "
            f"FROM {table} WHERE (tenant, {column}) IN (SELECT tenant, digest FROM asked) "
            f"ORDER BY last_day, {column}"
        ).fetchall()

    def _in_contexts(
        self, asked: Iterable[Text], column: str
    ) -> dict[Text, list[tuple[Where, Once]]]:
        self._register(asked)
        rows = self._connection.execute(
            f"SELECT tenant, {column}, context_digest, head_digest, response_digest, text_digest, "
            f"unwarmable, CAST(last_day AS VARCHAR) FROM seen "
            f"WHERE (tenant, {column}) IN (SELECT tenant, digest FROM asked) "
            f"QUALIFY ROW_NUMBER() OVER (PARTITION BY tenant, {column}, context_digest "
            "ORDER BY last_day DESC, response_digest) = 1 "
            "ORDER BY last_day DESC, response_digest"
        ).fetchall()
        found: dict[Text, list[tuple[Where, Once]]] = defaultdict(list)
        for tenant, value, context, head, *rest in rows:
            found[tenant, value].append((Where(context, head), Once(*rest)))
        return found

    def _letters(self, texts: Mapping[Text, str]) -> dict[Text, Text]:
        """Return tenant and letters of each text; texts without letters are absent."""
        rows = [(tenant, digest, text) for (tenant, digest), text in texts.items()]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        table = pa.table([pa.array(c, STR) for c in columns], ["tenant", "digest", "text"])
        self._connection.register("asked_texts", table)
        found = self._connection.execute(
            f"SELECT tenant, digest, {_LETTERS.format('text')} FROM asked_texts"
        ).fetchall()
        return {(tenant, digest): (tenant, left) for tenant, digest, left in found if left}

    def _register(self, asked: Iterable[Text]) -> None:
        distinct = sorted(set(asked))
        columns = zip(*distinct, strict=True) if distinct else ((), ())
        table = pa.table([pa.array(column, STR) for column in columns], ["tenant", "digest"])
        self._connection.register("asked", table)
