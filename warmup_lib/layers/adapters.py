"""Layer `adapters`: LoRA adapters in the slots of the model hosts, named by their content.

A host knows an adapter's cache blocks by its name and folder. Its present weights are therefore
served under a name that ends with their hash: changed weights are another adapter.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.layers.base import (
    SHARED,
    Arranged,
    Context,
    Layer,
    Lookup,
    Match,
    Outcome,
    PlanItem,
    Proof,
)
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.folders import adapter_folders, content_hash, size_of
from warmup_lib.layers.rows import plan_rows, refused_rows
from warmup_lib.targets import lora
from warmup_lib.targets.base import Target
from warmup_lib.targets.chat import RequestRefused, own
from warmup_lib.targets.host import ModelHost, as_host
from warmup_lib.targets.together import together

_HASH_DIGITS = 12
_OURS = re.compile(rf"(.+)-[0-9a-f]{{{_HASH_DIGITS}}}")
_NO_FOLDER = "its folder is not known here: name it in layers.adapters.folders"
_CHANGED = "its weights changed since the plan was made: make a new plan"


def served_name(logged: str, content: str) -> str:
    """Return the name under which an adapter of this content is served."""
    return f"{logged}-{content[:_HASH_DIGITS]}"


class Adapters(Layer):
    """One item an adapter that the log asks for and whose folder is known."""

    name = "adapters"
    target_kind: Literal["redis", "host"] = "host"
    match: Literal["exact", "semantic"] = "exact"
    needs = ("weights",)
    proof_warms = False

    def inputs(self, config: Config) -> Mapping[str, str]:
        """Return the content hash of every known adapter; empty for one that can't be read."""
        return {
            f"adapters/{name}": _hash_or_none(folder) or ""
            for name, folder in adapter_folders(config).items()
        }

    def blocked(self, item: PlanItem, missing: Sequence[PlanItem]) -> str | None:
        """Say that the model which an adapter changes is not ready."""
        if any(other.layer == "weights" and other.model == item.model for other in missing):
            return "its model is not ready there"
        return None

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row an adapter; its heat is that of all tenants' requests for it."""
        asked, hashes = _asked(demand), _hashes(config)
        rows = asked.filter(
            pc.is_in(asked["adapter"], value_set=pa.array(list(hashes), pa.string()))
        )
        names = rows["adapter"].to_pylist()
        folders = adapter_folders(config)
        content = pa.array([hashes[name] for name in names], pa.string())
        columns = {
            "key_digest": content,
            "source_digest": content,
            "bytes": pa.array([size_of(folders[name]) for name in names], pa.int64()),
            "ttl_s": int(config.layers.adapters.ttl.total_seconds()),
        }
        return plan_rows(self.name, rows, columns)

    def refused(self, demand: Demand, config: Config) -> pa.Table:
        """Return the adapters without a folder, or with none that can be read, by their names."""
        asked, hashes, folders = _asked(demand), _hashes(config), adapter_folders(config)
        rows = asked.filter(
            pc.invert(pc.is_in(asked["adapter"], value_set=pa.array(list(hashes), pa.string())))
        )
        known = pc.is_in(rows["adapter"], value_set=pa.array(list(folders), pa.string()))
        why = pc.if_else(known, pa.scalar("unreadable_folder"), pa.scalar("no_folder"))
        return refused_rows(self.name, rows, "adapter", why)

    async def arrange(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> Arranged:
        """Unload what is wanted no more, and skip the items beyond the slots that are left.

        Unloaded are other versions of the plan's adapters and, of known adapters, those that a
        complete plan drops; never one that requests use, and none that somebody else loaded.
        """
        host = as_host(target)
        await host.capabilities()  # a host tells its slots only once it has served a request
        there, slots = await lora.listed(host), await lora.slots(host)
        folders = adapter_folders(context.config)
        stale = {one.name for one in there.values() if _stale(one, folders, context)}
        names = [_name(item) for item in items]
        others = set(there) - set(names) | {name for name in stale if slots.busy(name)}
        others -= {name for name in stale if not slots.busy(name)}
        room = len(items) if slots.most is None else max(0, slots.most - len(others))
        notes = await _unload(stale | (set(names[room:]) & set(there)), host, slots)
        why = f"all {slots.most} adapter slots of the host are taken"
        if others:
            why += f", {len(others)} of them by {', '.join(sorted(others))}"
        skipped = [Outcome(item.item_id, "skipped", error=why, issued=0) for item in items[room:]]
        return Arranged(items[:room], skipped, notes)

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Load each adapter from its folder and take one token through it.

        One that is listed from that folder already and answers is `already`.
        """
        host, folders = as_host(target), adapter_folders(context.config)
        there = await lora.listed(host)
        return await together(_warm(item, host, folders, there, context) for item in items)

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look whether each adapter is listed and answers otherwise than the model it changes."""
        host, folders = as_host(target), adapter_folders(context.config)
        there, slots = await lora.listed(host), await lora.slots(host)
        crowd = f"{len(there)} adapters share {slots.most} slots: some are pushed out"
        if slots.most is not None and len(there) > slots.most:
            return [Proof(item.item_id, False, crowd) for item in items]
        proofs = []
        for item in items:
            listed = there.get(_name(item))
            proofs.append(await _prove(item, host, folders, listed, context))
        return proofs

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Find each request's adapter in the host's list; requests for none ask nothing."""
        there = await lora.listed(as_host(target))
        return [
            Match(one.request_id, hit, "exact" if hit else None, asked=one.adapter is not None)
            for one in lookups
            for hit in [context.adapter(one.adapter) in there]
        ]


async def _warm(
    item: PlanItem,
    host: ModelHost,
    folders: Mapping[str, str],
    there: Mapping[str, lora.Listed],
    context: Context,
) -> Outcome:
    folder, name = folders.get(item.adapter or ""), _name(item)
    if folder is None:
        return Outcome(item.item_id, "failed", error=_NO_FOLDER, issued=0)
    if await asyncio.to_thread(_hash_or_none, folder) != item.key_digest:
        return Outcome(item.item_id, "failed", error=_CHANGED, issued=0)
    listed = name in there and there[name].root == folder
    start = time.perf_counter()
    try:
        if not listed:
            await lora.load(host, name, folder)
        await lora.first_token(host, name, own(context.plan_id, item.item_id))
    except lora.NotAtRunTime as error:
        return Outcome(item.item_id, "skipped", error=error.reason, issued=0)
    except RequestRefused as error:
        return Outcome(item.item_id, "failed", error=str(error))
    return Outcome(
        item.item_id,
        "already" if listed else "warmed",
        bytes=0 if listed else item.bytes,
        ms=(time.perf_counter() - start) * 1000,
    )


async def _prove(
    item: PlanItem,
    host: ModelHost,
    folders: Mapping[str, str],
    listed: lora.Listed | None,
    context: Context,
) -> Proof:
    if listed is None:
        return Proof(item.item_id, False, "not listed")
    folder = folders.get(item.adapter or "")
    if listed.root != folder:
        return Proof(item.item_id, False, "listed from another folder than the settings name")
    if await asyncio.to_thread(_hash_or_none, folder) != item.key_digest:
        return Proof(item.item_id, False, "weights at its path have changed")
    try:
        found = await lora.compare(host, listed, own(context.plan_id, item.item_id))
    except RequestRefused as error:
        return Proof(item.item_id, False, f"listed, but {error}")
    if not found.differs:
        return Proof(item.item_id, False, "answers as the base model does")
    evidence = f"listed; logprob {found.adapter:.2f} vs base {found.base:.2f}"
    return Proof(item.item_id, True, evidence)


async def _unload(names: Collection[str], host: ModelHost, slots: lora.Slots) -> list[str]:
    """Unload adapters that no request uses; say in sentences which ones stay."""
    notes = []
    for name in sorted(names):
        why = "requests use it" if slots.busy(name) else None
        try:
            if why is None:
                await lora.unload(host, name)
        except RequestRefused as error:
            why = str(error)
        if why is not None:
            notes.append(f"target '{host.name}': adapter {name} stays loaded: {why}")
    return notes


def _stale(one: lora.Listed, folders: Mapping[str, str], context: Context) -> bool:
    """Say whether an adapter that a host lists was loaded by us and is not wanted any more."""
    ours = _OURS.fullmatch(one.name)
    if ours is None:
        return False
    logged = ours[1]
    if one.name == context.adapters.get(logged):
        return one.root != folders.get(logged)
    return logged in context.adapters or (context.complete and logged in folders)


def _name(item: PlanItem) -> str:
    return served_name(item.adapter or "", item.key_digest)


def _asked(demand: Demand) -> pa.Table:
    """Return one row an adapter: its model (the one it is asked for with the most) and heat.

    Heads carry the heat of the requests that have one, prompts that of the others.
    """
    names = ["adapter", "model", "heat_micro"]
    headless = pc.invert(
        pc.is_in(
            demand.prompts["head_digest"], value_set=demand.heads["head_digest"].combine_chunks()
        )
    )
    rows = pa.concat_tables(
        [demand.heads.select(names), demand.prompts.filter(headless).select(names)]
    )
    rows = rows.filter(pc.not_equal(pc.fill_null(rows["adapter"], ""), ""))
    grouped = rows.group_by(["adapter", "model"], use_threads=False).aggregate(
        [("heat_micro", "sum")]
    )
    heat: dict[str, int] = {}
    model: dict[str, tuple[int, str]] = {}
    for row in grouped.to_pylist():
        adapter, of_model = row["adapter"], row["heat_micro_sum"]
        heat[adapter] = heat.get(adapter, 0) + of_model
        model[adapter] = max(model.get(adapter, (-1, "")), (of_model, row["model"]))
    found = sorted(heat)
    return pa.table(
        {
            "tenant": pa.repeat(pa.scalar(SHARED), len(found)),
            "adapter": pa.array(found, pa.string()),
            "model": pa.array([model[name][1] for name in found], pa.string()),
            "heat_micro": pa.array([heat[name] for name in found], pa.int64()),
        }
    )


def _hashes(config: Config) -> dict[str, str]:
    """Return the content hash of each known adapter that can be read."""
    found = {name: _hash_or_none(folder) for name, folder in adapter_folders(config).items()}
    return {name: content for name, content in found.items() if content is not None}


def _hash_or_none(folder: str) -> str | None:
    try:
        return content_hash(folder)
    except InputDataError:
        return None
