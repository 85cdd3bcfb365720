"""The protocol through which plan, apply and verify know a layer, and the records it speaks in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.places import Places
from warmup_lib.threshold.force import Thresholds

if TYPE_CHECKING:
    import pyarrow as pa

    from warmup_lib.layers.demand import Demand
    from warmup_lib.targets.base import Target
    from warmup_lib.targets.host import ModelHost

Vector = np.ndarray[Any, np.dtype[np.float32]]
Status = Literal["warmed", "already", "failed", "skipped"]
MatchKind = Literal["exact", "semantic", "prefix"]

SHARED = "(shared)"
"""Tenant of the items that belong to none, such as models and adapters. They build no key."""


@dataclass(frozen=True)
class PlanItem:
    """One row of the `plan` table."""

    item_id: str
    rank: int
    layer: str
    tenant: str
    model: str
    model_revision: str | None
    adapter: str | None
    key_digest: str
    context_digest: str | None
    text_digest: str | None
    text: str | None
    response: str | None
    system_prompt: str | None
    tools: str | None
    params: str | None
    encoder: str | None
    heat_micro: int
    expected_micro: int
    bytes: int
    ttl_s: int
    reason: str
    tier: str | None = None
    chunk_ids: Sequence[str] | None = None
    document: str | None = None
    source_digest: str | None = None
    vector: Sequence[float] | None = None
    sources: Sequence[str] | None = None
    expected_variance: float = 0.0
    expected_low: int = 0
    expected_high: int = 0

    @staticmethod
    def rows(table: pa.Table) -> list[PlanItem]:
        """Return the items of a `plan` partition, in its order."""
        return [PlanItem(**row) for row in table.to_pylist()]


@dataclass(frozen=True)
class Outcome:
    """What happened to one item on one target (see the `receipts` table).

    `failed` concerns the item, `skipped` says that this target can't have it, such as a head of a
    model that the host does not serve. `issued` are the warm-up steps that were sent (to each
    rank), `effective` those that worked, by rank; None: the one step of the item's own status.
    `key_hash` stands for the entry's key, on a target that has keys.
    """

    item_id: str
    status: Status
    attempts: int = 1
    bytes: int = 0
    tokens: int = 0
    ms: float = 0.0
    ttl_s: int | None = None
    error: str | None = None
    issued: int = 1
    effective: Sequence[int] | None = None
    key_hash: str | None = None


@dataclass(frozen=True)
class Arranged:
    """One layer's items as one target gets them.

    Attributes:
        items: In the order in which they are to be warmed.
        skipped: Outcomes of the items that this target can't have, such as those beyond a budget
            that only the target knows.
        notes: Sentences for the report on what concerns no item, such as what had to stay.
    """

    items: Sequence[PlanItem]
    skipped: Sequence[Outcome] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Proof:
    """What looking at one target for one item showed (see the `residency` table)."""

    item_id: str
    resident: bool
    evidence: str


@dataclass(frozen=True)
class Lookup:
    """A later request as a layer looks it up."""

    request_id: str
    tenant: str
    model: str
    model_revision: str | None
    adapter: str | None
    text_digest: str
    context_digest: str
    response_digest: str
    head_digest: str
    prompt: str
    system_prompt: str | None
    tools: str | None
    user_segment: str | None = None
    chunk_ids: Sequence[str] | None = None
    vector: Vector | None = None


@dataclass(frozen=True)
class Match:
    """What an application would find for one request in one layer.

    A hit says that an entry serves the request, whoever wrote it; `item_id` says which plan item
    it is, and is None for an entry that no plan wrote. A request that asks nothing of the layer,
    such as one without a system prompt of a layer of system prompts, is not `asked`: no miss.
    `share` is the part of what the request retrieved that the entry holds.
    """

    request_id: str
    hit: bool
    match: MatchKind | None = None
    similarity: float | None = None
    item_id: str | None = None
    value: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_ms: float | None = None
    asked: bool = True
    share: float | None = None


class Vectors(Protocol):
    """Embeddings by text digest, all of one encoder."""

    @property
    def encoder(self) -> str:
        """Fingerprint of the encoder."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def get(self, digests: Sequence[str]) -> Mapping[str, Vector]:
        """Return float32 vectors of length 1; digests without one are absent."""


@dataclass(frozen=True)
class Context:
    """What a layer needs besides the items and the target.

    Attributes:
        plan_id: Marks our own traffic and names the generation on the targets.
        hosts: Model hosts that may generate an answer, in order of preference.
        control: A fresh word for the cold control: keys and salts are then taken in a namespace
            that nothing was ever warmed in (see `namespace`).
        planned: Item ids whose entries `find` prefers where several would serve; empty: none.
        adapters: Adapter in the log -> the name under which hosts serve its present weights, which
            ends with their content hash. Salts and keys hold that name too.
        thresholds: From which similarity on answers serve other questions; None: as configured.
        complete: The plan was made for all tenants, models and days, and builds on no other one:
            what it lacks is wanted no more.
    """

    plan_id: str
    config: Config
    keys: Keys
    vectors: Vectors
    hosts: Sequence[ModelHost] = field(default_factory=tuple)
    control: str | None = None
    planned: frozenset[str] = frozenset()
    adapters: Mapping[str, str] = field(default_factory=dict)
    thresholds: Thresholds | None = None
    complete: bool = False

    @cached_property
    def places(self) -> Places:
        """Where entries lie in this run."""
        return Places(self.keys, self.vectors.encoder, self.adapters, self.control)

    def adapter(self, logged: str | None) -> str | None:
        """Return the name of an adapter in keys, in salts and on hosts."""
        return self.places.adapter(logged)

    def namespace(self, tenant: str) -> str:
        """Return the tenant whose keys and salt are used: a fresh one in a control run."""
        return self.places.namespace(tenant)

    def threshold(self, tenant: str) -> float:
        """Return the cosine from which a tenant's answers serve other questions."""
        known = self.thresholds
        return self.config.encoder.threshold if known is None else known.at(tenant)


class Layer(Protocol):
    """One kind of thing that can be warm. Registered in `warmup_lib.layers.registry`.

    Attributes:
        name: The layer's name.
        target_kind: Where it is warmed.
        match: Whether an entry serves equal requests only, or similar ones too.
        needs: Layers that must be resident on a target before this one begins there.
        proof_warms: On a host: whether looking makes an item warm, so that only the first look
            after warming proves anything.
        tiers: The kinds of items it has besides its main one, and whether they serve equal
            requests only, or similar ones too.
        by_request: Whether its main items are found by a digest of the request itself, so that
            what other sets would have served can be told without asking the target.
    """

    name: str
    target_kind: Literal["redis", "host"]
    match: Literal["exact", "semantic"]
    needs: tuple[str, ...] = ()
    proof_warms: bool = True
    tiers: Mapping[str, Literal["exact", "semantic"]] = MappingProxyType({})
    by_request: bool = True

    def inputs(self, config: Config) -> Mapping[str, str]:  # noqa: ARG002
        """Return digests, by name, of what candidates are made from besides the lake."""
        return {}

    def limits(self, config: Config) -> Mapping[str | None, int]:
        """Return how many items of each tier a plan may hold; most layers have one tier, None."""
        return {None: int(getattr(config.layers, self.name).items)}

    def asks_host(self, item: PlanItem) -> bool:  # noqa: ARG002
        """Say whether warming an item elsewhere takes a model host with its adapters loaded."""
        return False

    def blocked(
        self,
        item: PlanItem,  # noqa: ARG002
        missing: Sequence[PlanItem],  # noqa: ARG002
    ) -> str | None:
        """Say why an item can't be warmed while these items of `needs` are not resident.

        None: it can, for it needs none of them.
        """
        return None

    async def arrange(
        self,
        items: Sequence[PlanItem],
        target: Target,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> Arranged:
        """Return what of these items this target gets, in which order; asked once an apply.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        return Arranged(items)

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return what could be warmed as rows of the `plan` table.

        `rank` and `expected_micro` are 0 and `reason` is empty: the plan fills them. Candidates
        that must not be warmed are in `refused`, not here.
        """

    def refused(self, demand: Demand, config: Config) -> pa.Table:
        """Return what must not be warmed, as rows of the `left_out` table with the reason."""

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Make the items resident on the target; one outcome an item, in order.

        Raises:
            TargetUnavailable: The target does not answer; nothing is known of these items.
        """

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look whether the items are resident; one proof an item, in order.

        Raises:
            TargetUnavailable: The target does not answer.
        """

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Return what an application would find for later requests; one match each, in order.

        Raises:
            TargetUnavailable: The target does not answer.
        """

    async def find_tier(
        self,
        tier: str,  # noqa: ARG002
        lookups: Sequence[Lookup],
        target: Target,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> list[Match]:
        """Return the same for one of `tiers`.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        return [Match(lookup.request_id, False, asked=False) for lookup in lookups]

    async def room(
        self,
        items: Sequence[PlanItem],  # noqa: ARG002
        target: Target,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> int | None:
        """Return the tokens that a host takes in before it drops these items; None: not known.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        return None

    async def audit(
        self,
        items: Sequence[PlanItem],  # noqa: ARG002
        target: Target,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> Mapping[str, int]:
        """Return counts of what a closer look at the entries of a plan showed; most have none.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        return {}


def item_id(
    layer: str,
    tenant: str,
    key_digest: str,
    model: str = "",
    revision: str | None = None,
    adapter: str | None = None,
    source: str | None = None,
) -> str:
    """Return the id of a plan item: the same content gets the same id in every plan.

    Args:
        layer: The layer's name.
        tenant: The tenant.
        key_digest: The digest in the item's key.
        model: Model, where the layer's key holds one.
        revision: Its revision.
        adapter: The adapter.
        source: Digest of the content, where it can change under one key.
    """
    place = [model, revision or "", adapter or ""]
    joined = "\0".join([layer, tenant, key_digest, *place, *([source] if source else [])])
    return f"{layer}-{hashlib.sha256(joined.encode()).hexdigest()[:24]}"
