"""The demand that layers draw their candidates from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup_lib.layers.base import Vectors

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Demand:
    """What the log says is asked for, with its heat; the input of every layer's candidates.

    Attributes:
        day: Last log day taken in, ISO date.
        prompts: One row a request identity: the columns of the `prompts` table, counts summed
            over the history, texts and answers of the latest day, and `heat_micro`. Where there
            is a column `listed`, it says which of them a list of the user's names: their answers
            may be generated however rarely they are asked.
        heads: The same for the `heads` table.
        encoder: Fingerprint of the encoder whose vectors the items will use.
        dimension: Length of its vectors.
        lengths: One row a model, revision and length bucket: `model`, `model_revision`, `tokens`
            (longest prompt of the bucket), `requests`, `heat_micro`.
        segments: One row a tenant, segment and text: `tenant`, `user_segment`, `segment_digest`
            (identity of the segment in keys), `text_digest`, `heat_micro`.
        members: One row a tenant, cluster and text of the day: `tenant`, `cluster_id`, `medoid`
            (text_digest of the cluster's most typical text), `text_digest`, `similarity`,
            `heat_micro`.
        chunks: The documents' chunks in force: the columns of the `chunks` table.
        vectors: Embeddings under that encoder, of texts and of chunks.
    """

    day: str
    prompts: pa.Table
    heads: pa.Table
    encoder: str
    dimension: int
    lengths: pa.Table | None = None
    segments: pa.Table | None = None
    members: pa.Table | None = None
    chunks: pa.Table | None = None
    vectors: Vectors | None = None
