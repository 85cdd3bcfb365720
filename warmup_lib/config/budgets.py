"""Settings of what a plan may spend, on whom, and which latency is aimed at."""

from __future__ import annotations

from typing import Annotated

from pydantic import ByteSize, Field, model_validator

from warmup_lib.config.kinds import Duration, Section, Share

_TOO_MUCH = 2**62
"""Sums and rests of budgets are counted in 64 bits."""


class SloConfig(Section):
    """The latency that is aimed at; where it is not kept, warming is worth more."""

    first_token: Duration | None = Field(None, description="time to first token")
    answer: Duration | None = Field(None, description="time to the end of an answer")


class BudgetsConfig(Section):
    """What all layers share, besides the most items of each; none: no limit."""

    redis_bytes: ByteSize | None = Field(
        None,
        gt=0,
        lt=_TOO_MUCH,
        description="memory of a plan on each Redis, such as 512MB or 2GiB",
    )
    kv_tokens: dict[str, Annotated[int, Field(gt=0, lt=_TOO_MUCH)]] = Field(
        default_factory=dict,
        description="model host -> tokens of heads that a plan may keep in its KV cache",
    )
    seconds: Duration | None = Field(
        None, description="longest that warming one target may take, by what it took before"
    )

    @property
    def shared(self) -> bool:
        """Whether any of them is set."""
        return self.redis_bytes is not None or bool(self.kv_tokens) or self.seconds is not None


class TenantConfig(Section):
    """What one tenant gets of the items that each layer has room for under limits and budgets."""

    floor: Share = Field(
        0.0, description="share of what a layer has room for that it gets, if it asks for so many"
    )
    cap: Share = Field(1.0, description="share of what a layer has room for that it gets at most")

    @model_validator(mode="after")
    def _floor_below_cap(self) -> TenantConfig:
        if self.floor > self.cap:
            raise ValueError("its floor is above its cap")
        return self
