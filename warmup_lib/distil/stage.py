"""The stage that turns a day's requests into distinct prompts and heads, with their counts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.distil import sql
from warmup_lib.distil.near import Text, near_duplicates
from warmup_lib.distil.templates import Template, head_digest, template
from warmup_lib.distil.volatile import Head, volatile
from warmup_lib.errors import InputDataError
from warmup_lib.guard import signature
from warmup_lib.keys import embedding_text
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import reason_word

_AT_ONCE = 1000


def run(lake: Lake, day: str, config: Config, progress: Progress = silent) -> StageReport:
    """Replace the `prompts` and `heads` partitions of `day`.

    Demand is every request but warm-up traffic and health checks; what a cache served, what went
    round the caches and what failed is demand too, and counted apart.

    Memory: DuckDB streams the requests and spills the groups; held are the day's distinct prompts.

    Raises:
        InputDataError: There are no requests of `day`.
    """
    started = time.perf_counter()
    manifest = lake.manifest("requests", {"day": day})
    if manifest is None:
        days = lake.days("requests")
        known = f"; there are {days[0]} to {days[-1]}" if days else ""
        raise InputDataError(f"no requests of {day} in the lake{known}: run `ingest` first")
    prompts, heads = _group(lake, day)
    heads = _mark_heads(heads)
    prompts = _mark_near(prompts, progress)
    prompts, templates = _mark_templates(prompts, progress)
    meta = {"config": config.digest(), "requests": manifest.content_digest()}
    lake.replace("prompts", {"day": day}, prompts, meta)
    lake.replace("heads", {"day": day}, heads, meta)
    return StageReport(
        "distil",
        rows_in=manifest.rows,
        rows_out=prompts.num_rows + heads.num_rows,
        seconds=time.perf_counter() - started,
        facts=_facts(prompts, heads) | _of_templates(templates),
    )


def _group(lake: Lake, day: str) -> tuple[pa.Table, pa.Table]:
    connection = lake.sql()
    try:
        return (
            connection.sql(sql.PROMPTS, params={"day": day}).to_arrow_table(),
            connection.sql(sql.HEADS, params={"day": day}).to_arrow_table(),
        )
    finally:
        connection.close()


def _mark_heads(heads: pa.Table) -> pa.Table:
    """Mark the heads that are new each time, and add each one's template."""
    rows = [
        Head(
            (row["tenant"], row["model"], row["model_revision"], row["adapter"]),
            row["head_digest"],
            row["system_prompt"] or "",
            row["tools"] or "",
        )
        for row in heads.drop_columns(["last_ts", "mean_ttft_ms"]).to_pylist()
    ]
    found = volatile(rows)
    marked = [
        known or (f"volatile: {found[row.digest]}" if row.digest in found else None)
        for known, row in zip(heads["unwarmable"].to_pylist(), rows, strict=True)
    ]
    heads = _with(heads, "unwarmable", marked)
    return _with(heads, "template_digest", [head_digest(row) for row in rows])


def _mark_near(prompts: pa.Table, progress: Progress) -> pa.Table:
    rows = prompts.select(
        ["tenant", "context_digest", "text_digest", "text", "requests", "unwarmable"]
    ).to_pylist()
    places = [(row["tenant"], row["context_digest"]) for row in rows]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for place, row in zip(places, rows, strict=True):
        # What was redacted is unknown, and two unknowns are not near each other.
        if row["unwarmable"] != "redacted" and row["text"]:
            groups[place].append(row)
    near: dict[tuple[str, str], dict[str, str]] = {}
    for done, (place, group) in enumerate(sorted(groups.items())):
        progress("near duplicates", done, len(groups))
        near[place] = near_duplicates(_distinct(group), signature)
    progress("near duplicates", len(groups), len(groups))
    marked = [
        near.get(place, {}).get(row["text_digest"]) for place, row in zip(places, rows, strict=True)
    ]
    return _with(prompts, "near_of", marked)


def _mark_templates(prompts: pa.Table, progress: Progress) -> tuple[pa.Table, list[Template]]:
    """Add the template of each text; also return those of the distinct texts."""
    rows = prompts["text"].to_pylist()
    texts = sorted({text for text in rows if text is not None})
    templates: dict[str, Template] = {}
    for done, text in enumerate(texts):
        if not done % _AT_ONCE:
            progress("templates", done, len(texts))
        templates[text] = template(text)
    progress("templates", len(texts), len(texts))
    digests = [None if text is None else templates[text].digest for text in rows]
    return _with(prompts, "template_digest", digests), list(templates.values())


def _of_templates(templates: list[Template]) -> dict[str, int]:
    return {
        "templates": len({one.digest for one in templates}),
        "code_blocks": sum(one.blocks for one in templates),
        "code_not_parsed": sum(one.unparsed for one in templates),
    }


def _distinct(group: list[dict[str, Any]]) -> list[Text]:
    """Return one text a digest: identities that differ in letter case share one."""
    texts = {row["text_digest"]: embedding_text(row["text"]) for row in group}
    requests: dict[str, int] = defaultdict(int)
    for row in group:
        requests[row["text_digest"]] += row["requests"]
    return [Text(digest, text, requests[digest]) for digest, text in texts.items()]


def _with(table: pa.Table, name: str, values: list[str | None]) -> pa.Table:
    column = pa.array(values, pa.string())
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def _facts(prompts: pa.Table, heads: pa.Table) -> dict[str, Any]:
    def total(name: str) -> int:
        return int(pc.sum(prompts[name], min_count=0).as_py())

    def reasons(table: pa.Table) -> dict[str, int]:
        why = table["unwarmable"].drop_null().to_pylist()
        return dict(Counter(reason_word(reason) for reason in why))

    return {
        "prompts": prompts.num_rows,
        "heads": heads.num_rows,
        "demand": total("requests"),
        "cache_hits": total("cache_hits"),
        "bypassed": total("bypassed"),
        "failed": total("failed"),
        "near_duplicates": prompts.num_rows - prompts["near_of"].null_count,
        "unwarmable_prompts": reasons(prompts),
        "unwarmable_heads": reasons(heads),
    }
