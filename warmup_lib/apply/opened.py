"""What apply and verify open before they begin: a plan's items and what its layers need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, PlanItem, Vector, Vectors
from warmup_lib.targets.base import Target
from warmup_lib.targets.host import ModelHost

_SHOWN = 10


class PlanVectors:
    """The vectors of a plan's texts, read once: each read of the lake reads whole days.

    Args:
        lake: All vectors of the plan's encoder; asked for what is not the plan's.
        digests: The plan's texts.
    """

    def __init__(self, lake: Vectors, digests: Sequence[str]) -> None:
        self._lake = lake
        self._digests = digests

    @property
    def encoder(self) -> str:
        """Fingerprint of the encoder."""
        return self._lake.encoder

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._lake.dimension

    @cached_property
    def _plan(self) -> Mapping[str, Vector]:
        return self._lake.get(self._digests)

    def get(self, digests: Sequence[str]) -> Mapping[str, Vector]:
        """Return float32 vectors of length 1; digests without one are absent."""
        found = {digest: self._plan[digest] for digest in digests if digest in self._plan}
        others = [digest for digest in digests if digest not in found]
        return {**found, **self._lake.get(others)} if others else found


def read_items(lake: Lake, plan_id: str, layers: Sequence[str] | None = None) -> list[PlanItem]:
    """Return a plan's items in order, all or those of some layers.

    Raises:
        InputDataError: There is no such plan, or a layer is named that it does not hold.
    """
    partition = {"plan_id": plan_id}
    if lake.manifest("plan", partition) is None:
        known = [p["plan_id"] for p in lake.partitions("plan")]
        there_are = (
            f"there are {', '.join(known[-_SHOWN:])}" if known else "run `warmup plan` first"
        )
        raise InputDataError(f"no such plan: {plan_id}; {there_are}")
    items = PlanItem.rows(lake.read("plan", partition))
    held = sorted({item.layer for item in items})
    if unknown := sorted(set(layers or ()) - set(held)):
        raise InputDataError(
            f"plan {plan_id} holds nothing in {', '.join(unknown)}; it holds {', '.join(held)}"
        )
    return [item for item in items if layers is None or item.layer in layers]


def open_context(
    lake: Lake,
    plan_id: str,
    config: Config,
    keys: Keys,
    items: Sequence[PlanItem],
    targets: Sequence[Target],
) -> Context:
    """Return what the layers need to warm and prove these items.

    Raises:
        InputDataError: The items were planned under more than one encoder.
    """
    from warmup_lib.embed.vectors import LakeVectors
    from warmup_lib.threshold.force import in_force

    encoders = sorted({item.encoder for item in items if item.encoder})
    if len(encoders) > 1:
        raise InputDataError(f"plan {plan_id} mixes encoders: {', '.join(encoders)}")
    hosts = tuple(t for t in targets if isinstance(t, ModelHost))
    texts = {item.text_digest for item in items if item.encoder and item.text_digest}
    encoder = encoders[0] if encoders else ""
    vectors = PlanVectors(LakeVectors(lake, encoder), sorted(texts))
    return Context(
        plan_id,
        config,
        keys,
        vectors,
        hosts,
        adapters=_adapters(lake, plan_id),
        thresholds=in_force(lake, config, encoder),
        complete=_complete(lake, plan_id),
    )


def _complete(lake: Lake, plan_id: str) -> bool:
    """Return whether a plan stands alone and was made for all that is asked for."""
    manifest = lake.manifest("plan", {"plan_id": plan_id})
    meta = manifest.meta if manifest is not None else {}
    parts = [meta.get("base"), meta.get("since"), *(meta.get("scope") or {}).values()]
    return all(part is None for part in parts)


def _adapters(lake: Lake, plan_id: str) -> dict[str, str]:
    """Return the plan's adapters, and the names under which their present weights are served."""
    from warmup_lib.layers.adapters import served_name

    columns = ["layer", "adapter", "key_digest"]
    rows = lake.read("plan", {"plan_id": plan_id}, columns).to_pylist()
    return {
        row["adapter"]: served_name(row["adapter"], row["key_digest"])
        for row in rows
        if row["layer"] == "adapters"
    }
