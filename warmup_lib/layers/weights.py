"""Layer `weights`: a model that its host has loaded, whole, and stepped through real lengths."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.layers.base import (
    SHARED,
    Context,
    Layer,
    Lookup,
    Match,
    Outcome,
    PlanItem,
    Proof,
    item_id,
)
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.heads import NOT_SERVED
from warmup_lib.layers.rows import plan_rows
from warmup_lib.layers.steps import Done, Steps
from warmup_lib.tables import LEFT_OUT
from warmup_lib.targets.base import Target
from warmup_lib.targets.chat import Head, RequestRefused
from warmup_lib.targets.host import ModelHost, as_host
from warmup_lib.targets.models import Served, served_models
from warmup_lib.targets.together import together

if TYPE_CHECKING:
    from warmup_lib.preflight.check import Checked

_LOG = logging.getLogger(__name__)
_PROBE_TOKENS = 16
_SHORTEST_COMMIT = 7
_SOURCE = pa.schema(
    [(name, pa.string()) for name in ("tenant", "model", "model_revision", "key_digest", "params")]
    + [("heat_micro", pa.int64())]
)


class Weights(Layer):
    """One item a model and revision; it belongs to no tenant."""

    name = "weights"
    target_kind: Literal["redis", "host"] = "host"
    match: Literal["exact", "semantic"] = "exact"

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a model and revision; `params` holds the lengths to step through."""
        rows = [_candidate(*model, config) for model in _by_model(demand)]
        ttl_s = int(config.layers.weights.ttl.total_seconds())
        source = pa.Table.from_pylist(rows, _SOURCE)
        return plan_rows(self.name, source, {"bytes": 0, "ttl_s": ttl_s})

    def refused(self, demand: Demand, config: Config) -> pa.Table:  # noqa: ARG002
        """Return nothing: every model that is asked for may be warmed."""
        return LEFT_OUT.empty()

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Step each model that is served, and whose folder is sound, through its lengths.

        Every rank gets every step. What counts is what worked: one step less on one rank, and the
        item is `failed`. `bytes` are those of the tensors, where the folder is on this machine.
        """
        host = as_host(target)
        await host.ready()
        models = await served_models(host)
        return [await _warm(item, host, models, context) for item in items]

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look whether the host is healthy, serves the model, and answers on every rank."""
        host = as_host(target)
        await host.ready()
        models = await served_models(host)
        return [await _prove(item, host, models, context) for item in items]

    async def find(
        self,
        lookups: Sequence[Lookup],
        target: Target,
        context: Context,  # noqa: ARG002
    ) -> list[Match]:
        """Return a hit for each request whose model the host serves."""
        host = as_host(target)
        served = await host.served()
        return [_match(one, host.model(Head(one.model, None)) in served) for one in lookups]


def _by_model(demand: Demand) -> list[tuple[str, str | None, list[tuple[int, int]]]]:
    """Return each model and revision with the tokens and the heat of its lengths."""
    found: dict[tuple[str, str | None], list[tuple[int, int]]] = {}
    for row in demand.lengths.to_pylist() if demand.lengths is not None else ():
        lengths = found.setdefault((row["model"], row["model_revision"]), [])
        lengths.append((row["tokens"], row["heat_micro"]))
    return [(*model, sorted(lengths)) for model, lengths in found.items()]


def _candidate(
    model: str, revision: str | None, lengths: Sequence[tuple[int, int]], config: Config
) -> dict[str, Any]:
    each, more = divmod(config.layers.weights.steps, len(lengths))
    buckets = [
        {"tokens": tokens, "steps": each + (number < more)}
        for number, (tokens, _) in enumerate(lengths)
    ]
    return {
        "tenant": SHARED,
        "model": model,
        "model_revision": revision,
        "key_digest": _digest(model, revision),
        "params": json.dumps({"buckets": buckets}),
        "heat_micro": sum(heat for _, heat in lengths),
    }


def _digest(model: str, revision: str | None) -> str:
    return hashlib.sha256(f"{model}\0{revision or ''}".encode()).hexdigest()[:32]


def _match(lookup: Lookup, served: bool) -> Match:
    place = (lookup.model, lookup.model_revision)
    ident = item_id(Weights.name, SHARED, _digest(*place), *place) if served else None
    return Match(lookup.request_id, served, "exact" if served else None, item_id=ident)


async def _warm(
    item: PlanItem, host: ModelHost, models: Mapping[str, Served], context: Context
) -> Outcome:
    served = models.get(host.model(Head(item.model, None)))
    if served is None:
        return Outcome(item.item_id, "skipped", error=NOT_SERVED)
    checked = await asyncio.to_thread(_checked, served)
    if problem := _other_revision(item, served) or _unsound(checked):
        return Outcome(item.item_id, "failed", error=problem)
    lengths = _lengths(item)
    begun = time.perf_counter()
    try:
        steps = await Steps.of(item, host, served, context)
    except RequestRefused as error:
        return Outcome(item.item_id, "failed", error=str(error))
    done = await together(steps.on(rank, lengths) for rank in range(steps.ranks))
    outcome = Outcome(
        item.item_id,
        "warmed",
        bytes=checked.tensor_bytes if checked else 0,
        tokens=sum(one.tokens for one in done),
        ms=(time.perf_counter() - begun) * 1000.0,
        issued=len(lengths),
        effective=[one.worked for one in done],
    )
    short = _short(done, len(lengths))
    return replace(outcome, status="failed", error=short) if short else outcome


def _short(done: Sequence[Done], issued: int) -> str | None:
    """Say on which ranks fewer steps worked than were sent; None: on none."""
    short = [
        f"{one.worked} of {issued} warm-up generations worked on rank {rank}"
        for rank, one in enumerate(done)
        if one.worked < issued
    ]
    reasons = sorted({reason for one in done for reason in one.reasons})
    return f"{', '.join(short)}: not ready ({'; '.join(reasons)})" if short else None


async def _prove(
    item: PlanItem, host: ModelHost, models: Mapping[str, Served], context: Context
) -> Proof:
    served = models.get(host.model(Head(item.model, None)))
    if served is None:
        return Proof(item.item_id, False, NOT_SERVED)
    try:
        steps = await Steps.of(item, host, served, context)
    except RequestRefused as error:
        return Proof(item.item_id, False, str(error))
    done = await together(steps.on(rank, [_PROBE_TOKENS]) for rank in range(steps.ranks))
    silent = [f"rank {rank}: {one.reasons[0]}" for rank, one in enumerate(done) if not one.worked]
    answered = f"healthy, served, answered on {steps.ranks} of {steps.ranks} ranks"
    return Proof(item.item_id, not silent, "; ".join(silent) or answered)


def _checked(served: Served) -> Checked | None:
    """Check the folder that a model was loaded from; None: it can't be judged on this machine."""
    from warmup_lib.preflight.check import check_model

    folder = Path(served.root or "")
    if not folder.is_absolute():
        return None
    try:
        return check_model(folder)
    except InputDataError:
        return None
    except Exception as error:
        # The host has loaded the model: that its folder could not be judged must not end a warm-up.
        _LOG.warning("the folder of a served model could not be checked: %s", type(error).__name__)
        return None


def _unsound(checked: Checked | None) -> str | None:
    if checked is None or not checked.errors:
        return None
    return f"the folder that the host loaded it from is not sound: {checked.errors[0]}"


def _other_revision(item: PlanItem, served: Served) -> str | None:
    """Say that the host serves another commit than requests name; None: it does not, or can't tell.

    Names of other kinds are not compared: only a folder of the Hugging Face cache tells its commit.
    """
    told, asked = served.revision, (item.model_revision or "").lower()
    if told is None or not _is_commit(asked) or told.startswith(asked) or asked.startswith(told):
        return None
    return f"the host serves revision {told[:12]}, requests name {asked[:12]}"


def _is_commit(revision: str) -> bool:
    return len(revision) >= _SHORTEST_COMMIT and not set(revision) - set("0123456789abcdef")


def _lengths(item: PlanItem) -> list[int]:
    """Return the prompt length of each step, shortest first."""
    buckets = json.loads(item.params or "{}").get("buckets", [])
    return sorted(bucket["tokens"] for bucket in buckets for _ in range(bucket["steps"]))
