"""The rows of all layers together: what each one is worth, takes and needs, and how it is counted.

The rows are the items of each layer's pool, one pool after another, and then the stems that heads
share, which are no items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config, PlanConfig
from warmup_lib.layers.base import SHARED
from warmup_lib.plan.coverage import COST, Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.offer import Offer
from warmup_lib.plan.points import ints, joined
from warmup_lib.plan.problem import NO_CAP, Groups, Problem
from warmup_lib.plan.selection import Choice
from warmup_lib.plan.stems import Stems, stems
from warmup_lib.plan.value import Value
from warmup_lib.tables import MICRO

SECONDS = "seconds/"
"""Begins the names of the budgets of time, which are in microseconds here."""

ITEMS, OF_LOG, TENANT, CLUSTER = "items", "source_limit", "tenant_cap", "cluster_cap"
"""How items are counted: by layer, as the log's own, by tenant, by cluster of prompts."""


@dataclass(frozen=True)
class Entrant:
    """One offer among those that share budgets.

    Attributes:
        layer: Its layer.
        tier: Its tier.
        target_kind: Where its items are warmed: `redis` or `host`.
        offer: The offer.
        warm: What is warm of it already, and stays: rows of the `plan` table.
        asked: What the log asks for of it, whatever sources propose: rows of the `plan` table.
    """

    layer: str
    tier: str | None
    target_kind: str
    offer: Offer
    warm: pa.Table
    asked: pa.Table

    @property
    def name(self) -> str:
        """Layer and tier."""
        return self.layer if self.tier is None else f"{self.layer}/{self.tier}"


@dataclass(frozen=True)
class Shares:
    """What tenants and clusters get of the items of each entrant.

    Attributes:
        plan: The settings, with floors and caps.
        clusters: `tenant`, `text_digest` and `cluster_id`; None: no cluster has a cap.
        whole: (e,) the items of each entrant that the shares are of.
    """

    plan: PlanConfig
    clusters: pa.Table | None
    whole: Ints

    def floors(self) -> dict[str, Ints]:
        """Return how many items of each entrant a tenant gets at least."""
        return {
            tenant: (one.floor * self.whole).astype(np.int64)
            for tenant, one in self.plan.tenants.items()
        }

    def most(self, cap: float) -> Ints:
        """Return how many items of each entrant a share is at most: one of few, none of none."""
        return np.maximum((cap * self.whole).astype(np.int64), int(cap > 0))


@dataclass(frozen=True)
class Assembly:
    """What can be chosen of all entrants. Arrays have one entry an item, stems left out.

    Attributes:
        entrants: They.
        pools: Of each one, what may be chosen.
        items: Rows of the `plan` table.
        part: Number of the entrant.
        heads: Which items are heads.
        stems: Their trees: first they themselves.
    """

    entrants: Sequence[Entrant]
    pools: Sequence[Choice]
    items: pa.Table
    part: Ints
    heads: Ints
    stems: Stems

    @staticmethod
    def of(entrants: Sequence[Entrant], pools: Sequence[Choice]) -> Assembly:
        """Return what entrants, at least one, may be chosen from by their pools."""
        items = pa.concat_tables(
            e.offer.candidates.take(pa.array(p.rows)) for e, p in zip(entrants, pools, strict=True)
        )
        part = np.repeat(np.arange(len(pools)), [len(pool.rows) for pool in pools])
        heads = np.flatnonzero(np.array([e.layer == "prefixes" for e in entrants])[part])
        return Assembly(
            entrants, pools, items, part, heads, head_stems(items.take(pa.array(heads)))
        )

    @property
    def count(self) -> int:
        """Rows, stems included."""
        return len(self.part) + len(self.stems.above) - len(self.heads)

    @property
    def places(self) -> Ints:
        """Row of each head and of each stem, in the order of `stems`."""
        return np.append(self.heads, np.arange(len(self.part), self.count))

    def rows(self, values: Any, stem: Any) -> Any:
        """Return values of items as values of all rows, with one that all stems have."""
        return np.append(values, np.full(self.count - len(self.part), stem))

    def each(self, of: Callable[[Offer], Any]) -> Any:
        """Return what the offers say of each item."""
        pairs = zip(self.entrants, self.pools, strict=True)
        return np.concatenate([of(entrant.offer)[pool.rows] for entrant, pool in pairs])

    def where(self, of: Callable[[Entrant], bool]) -> Mask:
        """Return which items are of some entrants."""
        return np.array([of(entrant) for entrant in self.entrants], np.bool_)[self.part]

    def chosen(self, rows: Mask) -> list[Ints]:
        """Return by entrant which of its candidates some rows are."""
        mine = rows[: len(self.part)]
        return [pool.rows[mine[self.part == n]] for n, pool in enumerate(self.pools)]

    def those(self, candidates: Sequence[Ints]) -> Mask:
        """Return which items are some candidates of each entrant."""
        pairs = zip(self.pools, candidates, strict=True)
        return np.concatenate([np.isin(pool.rows, rows) for pool, rows in pairs])

    def choices(self, rows: Mask, own: Mask) -> list[Choice]:
        """Return what is chosen, by entrant.

        Args:
            rows: The rows that are chosen.
            own: (n items,) what the log's own demand chose of them.
        """
        mine = rows[: len(self.part)]
        by_log = [own[mine & (self.part == n)] for n in range(len(self.entrants))]
        each = zip(self.entrants, self.chosen(rows), by_log, strict=True)
        return [one.offer.only(picked, one.warm, logged) for one, picked, logged in each]

    @property
    def tokens(self) -> Ints:
        """Tokens that each row adds to what it begins with."""
        tokens = np.zeros(self.count, np.int64)
        tokens[self.places] = self.stems.tokens
        return tokens

    @property
    def hits(self) -> Ints:
        """Hits that each item adds, in millionths a day."""
        return np.concatenate([pool.expected for pool in self.pools])

    def saved(self, value: Value, hits: Ints) -> Ints:
        """Return what each row saves where its item has so many hits, in millionths a day."""
        ends = np.zeros(len(self.part), np.int64)
        ends[self.heads] = self.stems.ends[: len(self.heads)]
        saved = [
            value.saved(self.items.filter(pa.array(mine)), hits[mine], ends[mine])
            for n in range(len(self.pools))
            for mine in [self.part == n]
        ]
        whole: Ints = self.rows(np.concatenate(saved), 0)
        return whole

    def weighted(self, saved: Ints) -> Ints:
        """Return what rows are worth by the weights of all their sources."""
        worth = saved[: len(self.part)] * self.each(lambda offer: offer.proposed.weight)
        # What somebody names is taken where there is room, whatever is expected of it.
        least = self.each(lambda offer: offer.proposed.named).astype(np.int64)
        whole: Ints = self.rows(np.maximum(np.floor(worth).astype(np.int64), least), 0)
        return whole

    def needs(self) -> Ints:
        """Return the row that each one needs: a stem, else its adapter, else its model."""
        layers = np.array([entrant.layer for entrant in self.entrants], np.str_)[self.part]
        model, adapter = (self.items[name].to_pylist() for name in ("model", "adapter"))
        loaded = {adapter[row]: row for row in np.flatnonzero(layers == "adapters").tolist()}
        ready = {model[row]: row for row in np.flatnonzero(layers == "weights").tolist()}
        needs = np.full(self.count, -1)

        def host(row: int) -> int:
            return loaded.get(adapter[row], ready.get(model[row], -1))

        for row in loaded.values():
            needs[row] = ready.get(model[row], -1)
        mute = np.asarray(pc.is_null(self.items["response"]), dtype=np.bool_)
        for row in np.flatnonzero((layers == "responses") & mute).tolist():
            needs[row] = host(row)
        for place, above, head in zip(self.places, self.stems.above, self.stems.head, strict=True):
            needs[place] = self.places[above] if above >= 0 else host(int(self.heads[head]))
        return needs

    def cost(self, config: Config, value: Value) -> dict[str, tuple[Ints, int]]:
        """Return, by the name of a budget, what each row takes of it, and what there is."""
        budgets, tokens = config.plan.budgets, self.tokens
        made: dict[str, tuple[Ints, int]] = {}
        if budgets.redis_bytes is not None:
            stored = self.where(lambda entrant: entrant.target_kind == "redis")
            held = sum(
                int(pc.sum(e.warm["bytes"], min_count=0).as_py())
                for e in self.entrants
                if e.target_kind == "redis"
            )
            taken = self.rows(np.where(stored, ints(self.items["bytes"]), 0), 0)
            made["redis_bytes"] = (taken, max(0, budgets.redis_bytes - held))
        model = [self.items["model"][int(row)].as_py() for row in self.heads[self.stems.head]]
        for host, most in sorted(budgets.kv_tokens.items()):
            away = np.zeros(self.count, np.bool_)
            away[self.places] = [(host, name) in value.measured.unserved for name in model]
            made[f"kv_tokens/{host}"] = (np.where(away, 0, tokens), most)
        if budgets.seconds is not None:
            most = int(budgets.seconds.total_seconds() * MICRO)
            micros = self._micros(value)
            on_redis = self.rows(self.where(lambda entrant: entrant.target_kind == "redis"), False)
            made[f"{SECONDS}redis"] = (np.where(on_redis, micros, 0), most)
            made[f"{SECONDS}host"] = (np.where(on_redis, 0, micros), most)
        return made

    def _micros(self, value: Value) -> Ints:
        """Return how long each row takes to be warmed."""
        tokens = self.tokens
        seconds = [
            value.seconds(self.items.filter(pa.array(mine)), tokens[: len(mine)][mine])
            for n in range(len(self.entrants))
            for mine in [self.part == n]
        ]
        whole = self.rows(np.concatenate(seconds), 0.0)
        shared = self.places[len(self.heads) :]
        whole[shared] = tokens[shared] * value.spent("prefixes").token_s
        micros: Ints = np.ceil(whole * MICRO).astype(np.int64)
        return micros

    def groups(self, shares: Shares | None, own: Mask) -> dict[str, Groups]:
        """Return how items are counted, by what the caps are called.

        Args:
            shares: What tenants and clusters get; None: as it comes.
            own: (n items,) what counts as chosen by the log's own demand.
        """
        limits = np.array([entrant.offer.limit for entrant in self.entrants])
        nothing = np.zeros(len(limits), np.int64)
        quotas = np.array(
            [NO_CAP if q is None else q for q in (e.offer.proposed.quota for e in self.entrants)]
        )
        made = {
            ITEMS: Groups(self.rows(self.part, -1), nothing, limits),
            OF_LOG: Groups(self.rows(np.where(own, self.part, -1), -1), nothing, quotas),
        }
        if shares is not None and shares.plan.tenants:
            made[TENANT] = self._tenants(shares)
        if shares is not None and shares.clusters is not None:
            made[CLUSTER] = self._clusters(shares, shares.clusters)
        return made

    def _tenants(self, shares: Shares) -> Groups:
        tenants = shares.plan.tenants
        place = pc.index_in(self.items["tenant"], value_set=pa.array(tenants, pa.string()))
        tenant = ints(pc.fill_null(place, -1))
        of = np.where(tenant < 0, -1, self.part * len(tenants) + tenant)
        floors = list(shares.floors().values())
        caps = [
            shares.most(one.cap) if one.cap < 1 else np.full(len(shares.whole), NO_CAP)
            for one in tenants.values()
        ]
        floor, cap = (np.stack(each, axis=1).ravel() for each in (floors, caps))
        there = np.bincount(of[of >= 0], minlength=len(floor))
        return Groups(self.rows(of, -1), np.minimum(floor, there), cap)

    def unasked(self, groups: Groups, shares: Shares) -> list[dict[str, Any]]:
        """Return where tenants have fewer items to choose from than their floors would hold.

        Parts whose items belong to no tenant are left out.

        Args:
            groups: How the items of tenants are counted.
            shares: What tenants get.
        """
        there = groups.count().reshape(len(self.entrants), -1)
        owned = self.part[np.asarray(pc.not_equal(self.items["tenant"], SHARED), dtype=np.bool_)]
        return [
            {
                "part": self.entrants[part].name,
                "tenant": tenant,
                "items": int(there[part, place]),
                "floor": int(floor[part]),
            }
            for place, (tenant, floor) in enumerate(shares.floors().items())
            for part in np.unique(owned).tolist()
            if there[part, place] < floor[part]
        ]

    def below(self, groups: Groups, tenants: Sequence[str], rows: Mask) -> list[dict[str, Any]]:
        """Return where some rows of tenants stay below their floors.

        Args:
            groups: How the items of tenants are counted.
            tenants: They, in the order of the settings.
            rows: What is chosen.
        """
        count = groups.count(rows)
        return [
            {
                "part": self.entrants[group // len(tenants)].name,
                "tenant": tenants[group % len(tenants)],
                "items": int(count[group]),
                "floor": int(groups.least[group]),
            }
            for group in np.flatnonzero(count < groups.least).tolist()
        ]

    def _clusters(self, shares: Shares, clusters: pa.Table) -> Groups:
        known = joined(clusters["tenant"], clusters["text_digest"]).combine_chunks()
        text = joined(self.items["tenant"], self.items["text_digest"])
        place = pc.index_in(text, value_set=known)
        numbers = clusters["cluster_id"].combine_chunks().dictionary_encode()
        count = max(1, len(numbers.dictionary))
        cluster = ints(pc.fill_null(numbers.indices.take(place), -1))
        of = np.where(cluster < 0, -1, self.part * count + cluster)
        most = np.repeat(shares.most(shares.plan.cluster_cap), count)
        return Groups(self.rows(of, -1), np.zeros(len(most), np.int64), most)

    def problem(
        self, worth: Ints, cost: dict[str, tuple[Ints, int]], groups: dict[str, Groups]
    ) -> Problem:
        """Return what to choose from, under these budgets and caps."""
        taken = np.array([column for column, _ in cost.values()], np.int64)
        limit = np.array([most for _, most in cost.values()], np.int64)
        taken = taken.reshape(len(limit), self.count)
        return Problem(worth, taken, limit, self.needs(), tuple(groups.values()))


def pools_of(
    entrants: Sequence[Entrant], config: Config, value: Value, shares: Shares | None
) -> list[Choice]:
    """Return by entrant what the log's own demand may choose, blind to other sources."""
    floors = shares.floors() if shares is not None else {}
    return [
        one.offer.pool(
            one.warm,
            _shares(one, config, value),
            {tenant: int(least[n]) for tenant, least in floors.items()},
        )
        for n, one in enumerate(entrants)
    ]


def _shares(entrant: Entrant, config: Config, value: Value) -> Ints | None:
    """Return what each candidate takes of all budgets, over what the log's cheapest takes."""
    budgets, candidates = config.plan.budgets, entrant.offer.candidates
    logged = entrant.offer.proposed.logged
    if not budgets.shared or not logged.any():
        return None
    share = np.full(candidates.num_rows, 1 / entrant.offer.limit)
    if budgets.redis_bytes is not None and entrant.target_kind == "redis":
        share += ints(candidates["bytes"]) / budgets.redis_bytes
    if budgets.seconds is not None:
        spent = value.seconds(candidates, np.zeros(len(share), np.int64))
        share += spent / budgets.seconds.total_seconds()
    over = np.maximum(share / share[logged].min(), 1.0)
    return np.asarray(np.round(COST * over), dtype=np.int64)


def head_stems(heads: pa.Table) -> Stems:
    """Return the trees of heads: what is kept for one tenant, model and adapter is shared."""
    place = joined(*(heads[name] for name in ("tenant", "model", "model_revision", "adapter")))
    text = joined(heads["system_prompt"], heads["tools"])
    pairs = zip(place.to_pylist(), text.to_pylist(), strict=True)
    return stems([(where, whole.encode()) for where, whole in pairs])
