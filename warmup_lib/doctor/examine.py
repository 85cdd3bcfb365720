"""All seven traps from whatever was given: which input is asked about which trap."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from warmup_lib.config import Config
from warmup_lib.doctor import (
    bypass,
    key_dimensions,
    kv_length,
    out_of_step,
    tenant,
    tokenisation,
    weight_shards,
)
from warmup_lib.doctor.base import TRAPS, Part, joined
from warmup_lib.doctor.log import Log, read_log
from warmup_lib.doctor.scan import look
from warmup_lib.doctor.splits import find_splits
from warmup_lib.errors import InputDataError, TargetUnavailable
from warmup_lib.ingest.reader import Tally, read_requests
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.preflight.findings import Finding
from warmup_lib.stage import Progress, silent
from warmup_lib.targets.chat import RequestRefused
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import RedisStore

if TYPE_CHECKING:
    import pyarrow as pa

NEEDS = {
    "weight_shards": "--model-dir",
    "tokenisation": "--requests or --host",
    "kv_length": "--host or --requests",
    "tenant": "--redis, --requests or --host",
    "bypass": "--requests",
    "key_dimensions": "--requests or --redis",
    "out_of_step": "--host or --requests",
}
"""Which inputs tell of each trap."""

WAIT_S = 5.0
"""A host that starts is waited for as long as a user waits."""


@dataclass(frozen=True)
class Given:
    """What the doctor may look at; None: not given.

    Attributes:
        model_dir: Folder of a model.
        ranks: Ranks over which it is to be served.
        deep: Load its tensors too.
        host: A model host.
        store: A Redis.
        requests: A request log.
        lake: The lake, for the receipts of its latest plan.
    """

    model_dir: Path | None = None
    ranks: int = 1
    deep: bool = False
    host: ModelHost | None = None
    store: RedisStore | None = None
    requests: Path | None = None
    lake: Lake | None = None


@dataclass(frozen=True)
class Examined:
    """What was found.

    Attributes:
        traps: By name, in the order of `TRAPS`.
        findings: All that is wrong with the model folder.
        down: Targets that did not answer, and why.
    """

    traps: dict[str, Part]
    findings: list[Finding]
    down: list[str]


@dataclass
class _Examination:
    given: Given
    progress: Progress
    parts: defaultdict[str, list[Part]] = field(default_factory=lambda: defaultdict(list))
    findings: list[Finding] = field(default_factory=list)
    down: list[str] = field(default_factory=list)

    def folder(self, receipts: pa.Table | None) -> None:
        given = self.given
        if given.model_dir is not None:
            part, self.findings = weight_shards.look_at_folder(
                given.model_dir, given.ranks, given.deep, self.progress
            )
            self.parts["weight_shards"].append(part)
        if receipts is not None and (worked := weight_shards.look_at_receipts(receipts)):
            self.parts["weight_shards"].append(worked)

    def log(self, log: Log, keys: Keys) -> None:
        splits = find_splits(log)
        self.parts["tokenisation"].append(tokenisation.look_at_log(log, splits))
        self.parts["kv_length"].append(kv_length.look_at_log(log))
        self.parts["tenant"].append(tenant.look_at_log(log, keys))
        self.parts["bypass"].append(bypass.look_at_log(log, splits))
        self.parts["key_dimensions"].append(key_dimensions.look_at_log(log, splits))
        self.parts["out_of_step"].append(out_of_step.look_at_log(log))

    async def store(self, store: RedisStore, log: Log | None) -> None:
        try:
            kept = await look(store)
        except TargetUnavailable as error:
            self._is_down("the Redis", error.reason, ("tenant", "key_dimensions"))
            return
        self.parts["tenant"].append(tenant.look_at_store(kept, log))
        tenants = len(log.tenants) if log else None
        self.parts["key_dimensions"].append(key_dimensions.look_at_store(kept, tenants))

    async def host(self, host: ModelHost, log: Log | None, receipts: pa.Table | None) -> None:
        others = ("tokenisation", "kv_length", "tenant")
        seen = await out_of_step.watch(host, WAIT_S)
        if not seen.ready:
            self.parts["out_of_step"].append(out_of_step.judge(seen, "", ()))
            self._is_down("the host", seen.said, others)
            return
        try:
            epoch = await host.epoch()
            self.parts["out_of_step"].append(
                out_of_step.judge(seen, epoch, _warmed(receipts, epoch))
            )
            model = await _model(host)
            await self._on(host, model, log)
        except TargetUnavailable as error:
            self._is_down("the host", error.reason, others)
        except RequestRefused as error:
            for trap in others:
                self.parts[trap].append(Part("not_checked", f"the host can't be asked: {error}"))

    async def _on(self, host: ModelHost, model: str, log: Log | None) -> None:
        """Ask a ready host; what it refuses is not checked."""
        lengths = await tokenisation.measured(host, model)
        folder = self.given.model_dir
        if folder is not None:
            await self._part("tokenisation", tokenisation.look_at_folder(host, model, folder))
        await self._part("tokenisation", tokenisation.look_at_host(host, model, lengths))
        await self._part("kv_length", kv_length.look_at_host(host, model, lengths, log))
        await self._part("tenant", tenant.look_at_host(host, model))

    async def _part(self, trap: str, looking: Awaitable[Part]) -> None:
        try:
            self.parts[trap].append(await looking)
        except (RequestRefused, InputDataError) as error:
            self.parts[trap].append(Part("not_checked", f"the host can't be asked: {error}"))

    def _is_down(self, what: str, why: str, traps: Sequence[str]) -> None:
        self.down.append(f"{what} is down: {why}")
        for trap in traps:
            self.parts[trap].append(Part("not_checked", f"{what} is down: {why}"))


def examine(
    given: Given, config: Config, keys: Callable[[], Keys], progress: Progress = silent
) -> Examined:
    """Look for the seven traps in all that was given.

    Args:
        given: What to look at. Its targets are closed at the end.
        config: Settings.
        keys: Makes the builder of the identities, where a log is given.
        progress: Told how many tensors were loaded.

    Raises:
        InputDataError: Nothing was given, or the model folder or the log can't be used.
        ConfigError: The host refuses the key.
    """
    run = _Examination(given, progress)
    receipts = _receipts(given.lake)
    inputs = (given.model_dir, given.host, given.store, given.requests, receipts)
    if all(one is None for one in inputs):
        raise InputDataError("nothing to look at: give --requests, --redis, --host or --model-dir")
    run.folder(receipts)
    log = None
    if given.requests is not None:
        built = keys()
        log = _log(given.requests, config, built)
        run.log(log, built)
    asyncio.run(_targets(run, log, receipts))
    traps = {name: joined(run.parts[name], NEEDS[name]) for name in TRAPS}
    return Examined(traps, run.findings, run.down)


async def _targets(run: _Examination, log: Log | None, receipts: pa.Table | None) -> None:
    if (store := run.given.store) is not None:
        try:
            await run.store(store, log)
        finally:
            await store.close()
    if (host := run.given.host) is not None:
        try:
            await run.host(host, log, receipts)
        finally:
            await host.close()


def _log(file: Path, config: Config, keys: Keys) -> Log:
    tally = Tally()
    rows = read_requests([file], "auto", config, keys, tally=tally)
    log = read_log(rows, tally.nameless)
    if not log.rows and not log.own:
        raise InputDataError("the log holds no requests of an application's, and no warm-up")
    return log


def _receipts(lake: Lake | None) -> pa.Table | None:
    """Return the receipts of the latest plan; None: there are none."""
    plan = lake.latest_plan() if lake is not None else None
    if lake is None or plan is None or lake.manifest("receipts", {"plan_id": plan}) is None:
        return None
    return lake.read("receipts", {"plan_id": plan})


def _warmed(receipts: pa.Table | None, epoch: str) -> list[datetime]:
    """Return when items were warmed in the process with this epoch."""
    if receipts is None:
        return []
    rows = receipts.select(["target_epoch", "status", "at"]).to_pylist()
    return [
        row["at"].astimezone(UTC)
        for row in rows
        if row["target_epoch"] == epoch and row["status"] == "warmed"
    ]


async def _model(host: ModelHost) -> str:
    """Return the first served name: a model's own, for adapters come after it in no order."""
    from warmup_lib.targets.lora import listed

    adapters = set(await listed(host))
    served = sorted(await host.served())
    return next((name for name in served if name not in adapters), served[0])
