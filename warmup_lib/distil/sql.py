"""The group-bys that turn the demand of one day into prompts and heads.

Every value that several requests of one identity may disagree on is settled by an order that does
not depend on how rows are stored: the most frequent one and the smallest on ties, or the latest by
(ts, request id, source, position). Means are taken over integers, which add up exactly.
"""

from __future__ import annotations

_KEY = "tenant, response_digest"

# Tokens are estimated at four characters of ASCII each, and one Chinese character.
# An answer that was cut off or filtered is no answer to keep. Logs that say nothing of how an
# answer ended are believed, but for answers as long as they were allowed to be.
# What says that an answer may not be kept stands in the request's header or in the answer's.
_DEMAND = r"""
demand AS (
    SELECT
        *,
        COALESCE(bypass, false)
            OR COALESCE(regexp_matches(cache_control, '(?i)\b(no-store|private)\b'), false)
            AS no_store,
        COALESCE(status >= 400, false) AS erred,
        COALESCE(redacted, false) AS was_redacted,
        (ts, request_id, source, position) AS moment,
        concat(system_prompt, tools, history, prompt) AS whole,
        (2 * length(whole) + 3 * (strlen(whole) - length(whole))) // 8 AS estimated_tokens,
        CASE
            WHEN json_extract_string(extra, '$.finish_reason') IS NOT NULL
                THEN json_extract_string(extra, '$.finish_reason')
                    IN ('stop', 'eos', 'eos_token', 'end_turn', 'stop_sequence')
            ELSE COALESCE(
                completion_tokens < CAST(json_extract(params, '$.max_tokens') AS DOUBLE), true
            )
        END AS finished
    FROM requests
    WHERE day = CAST($day AS DATE)
        AND NOT COALESCE(warmup, false)
        AND NOT COALESCE(health, false)
)"""


def _most_frequent(column: str) -> str:
    return f"""
    top_{column} AS (
        SELECT {_KEY}, {column} FROM demand WHERE {column} IS NOT NULL
        GROUP BY {_KEY}, {column}
        QUALIFY row_number() OVER (PARTITION BY {_KEY} ORDER BY COUNT(*) DESC, {column}) = 1
    )"""


_SETTLED = ("prompt", "head_digest", "locale", "intent", "user_segment")

PROMPTS = rf"""
WITH {_DEMAND},{",".join(_most_frequent(column) for column in _SETTLED)},
counted AS (
    SELECT
        {_KEY},
        MIN(model) AS model,
        MIN(model_revision) AS model_revision,
        MIN(adapter) AS adapter,
        MIN(text_digest) AS text_digest,
        MIN(context_digest) AS context_digest,
        BOOL_OR(history IS NOT NULL) AS history,
        MIN(params) AS params,
        COUNT(*) AS requests,
        COUNT(*) FILTER (WHERE cache_hit) AS cache_hits,
        COUNT(*) FILTER (WHERE bypass) AS bypassed,
        COUNT(*) FILTER (WHERE erred) AS failed,
        MAX(COALESCE(prompt_tokens, estimated_tokens)) AS prompt_tokens,
        MIN(ts) AS first_ts,
        MAX(ts) AS last_ts,
        ARG_MAX(response, moment) FILTER (
            WHERE regexp_matches(response, '\S') AND finished
                AND NOT erred AND NOT was_redacted AND NOT no_store
        ) AS response,
        ARG_MAX(chunk_ids, moment) FILTER (WHERE chunk_ids IS NOT NULL) AS chunk_ids,
        CASE
            WHEN BOOL_AND(was_redacted) THEN 'redacted'
            WHEN BOOL_AND(no_store) THEN 'no_store'
            WHEN BOOL_AND(erred) THEN 'failed_only'
        END AS unwarmable
    FROM demand
    GROUP BY {_KEY}
)
SELECT counted.*, prompt AS text, head_digest, locale, intent, user_segment
FROM counted
{"".join(f"LEFT JOIN top_{column} USING ({_KEY}) " for column in _SETTLED)}
"""
"""One row an identity. `redacted` needs every request to have been: an identity covers the whole
request, so one in which nothing was removed shows that what was removed elsewhere is the answer."""

HEADS = f"""
WITH {_DEMAND}
SELECT
    tenant,
    head_digest,
    MIN(model) AS model,
    MIN(model_revision) AS model_revision,
    MIN(adapter) AS adapter,
    MIN(system_prompt) AS system_prompt,
    MIN(tools) AS tools,
    COUNT(*) AS requests,
    MAX(ts) AS last_ts,
    SUM(CAST(ROUND(ttft_ms * 1000) AS BIGINT)) FILTER (WHERE NOT COALESCE(cache_hit, false))
        / (1000.0 * COUNT(ttft_ms) FILTER (WHERE NOT COALESCE(cache_hit, false))) AS mean_ttft_ms,
    CASE WHEN BOOL_AND(was_redacted) THEN 'redacted' END AS unwarmable
FROM demand
WHERE COALESCE(system_prompt, '') <> '' OR tools IS NOT NULL
GROUP BY tenant, head_digest
"""
"""One row a head. Requests without system prompt and tools have no head to share."""
