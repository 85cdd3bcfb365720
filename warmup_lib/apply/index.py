"""The vector index of a plan for applications whose Redis has none."""

from __future__ import annotations

from collections.abc import Sequence

from warmup_lib.errors import TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.index_file import write_index_files
from warmup_lib.layers.retrieval import Retrieval
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import RedisStore


async def index_files(
    lake: Lake, items: Sequence[PlanItem], targets: Sequence[Target], context: Context
) -> str | None:
    """Write the FAISS files of a plan's retrieval items where a Redis can't search them.

    Returns:
        Their folder; None: nothing is to be retrieved, or each Redis that answers can search.
    """
    ours = [item for item in items if item.layer == Retrieval.name]
    if not ours or not any([await _lacks_search(target) for target in targets]):
        return None
    return write_index_files(lake, context.plan_id, ours, context.vectors, context.keys)


def index_notes(files: str | None) -> list[str]:
    """Return a sentence on where chunks and lists can be searched by vector, if not on a Redis."""
    if files is None:
        return []
    return [
        "a Redis has no search module: chunks and lists are found there by their keys, and by "
        f"vector with the FAISS files in {files}"
    ]


async def _lacks_search(target: Target) -> bool:
    if not isinstance(target, RedisStore):
        return False
    try:
        return not await target.has_search()
    except TargetUnavailable:
        return False  # it is among those given up
