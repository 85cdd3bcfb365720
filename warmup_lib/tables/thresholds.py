"""The tables of calibrated thresholds: what is in force for whom, and the pairs that showed it."""

from __future__ import annotations

from warmup_lib.tables.columns import BOOL, INT, REAL, STR, TENANT, Column, Table

THRESHOLDS = Table(
    "thresholds",
    "One row a tenant and encoder: from which similarity on an answer may serve another question.",
    ("day",),
    (
        Column("tenant", STR, "whose it is; `*`: of everyone who has no row of his own"),
        Column("encoder", STR, "fingerprint of the encoder"),
        Column("threshold", REAL, "least cosine; null: too few pairs, the configured one stands"),
        Column("verdict", STR, "`kept`, `none_keeps` (identity only) or `too_few`"),
        Column("bound", REAL, "largest share of wrong hits that was asked for"),
        Column("confidence", REAL, "chance with which it is kept"),
        Column("pairs", INT, "pairs that are similar enough to tell anything", "pairs"),
        Column("hits", INT, "of these, at the threshold or above", "pairs"),
        Column("wrong", INT, "of the hits, those with different answers", "pairs"),
        Column("upper", REAL, "upper limit of wrong / hits at that confidence"),
        Column(
            "tenants", INT, "tenants whose pairs were taken together, this one included", "tenants"
        ),
        Column("source", STR, "`pairs`: a file of the user's; `log`: the history"),
    ),
    ("tenant", "encoder"),
)

THRESHOLD_PAIRS = Table(
    "threshold_pairs",
    "One row a pair of questions that a threshold was calibrated on.",
    ("day",),
    (
        TENANT,
        Column("encoder", STR, "fingerprint of the encoder"),
        Column("a_digest", STR, "identity of one text", "hex"),
        Column("b_digest", STR, "identity of the other", "hex"),
        Column("similarity", REAL, "cosine of the two"),
        Column("wrong", BOOL, "they have different answers"),
    ),
    ("tenant", "encoder", "a_digest", "b_digest"),
)
