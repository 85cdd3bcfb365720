"""The kinds of values that settings have, and the base of every section of them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_UNITS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration(value: Any) -> Any:
    """Read `90s`, `30m`, `48h`, `3d` as seconds, which numbers are too."""
    if isinstance(value, str) and (m := re.fullmatch(r"\s*([\d.]+)\s*(ms|s|m|h|d)\s*", value)):
        return float(m[1]) * _UNITS[m[2]]
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    Field(ge=timedelta(seconds=1), le=timedelta(days=36500)),
]
Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    """A part of the settings: unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _of_known_names(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        known = ", ".join(cls.model_fields)
        if not isinstance(value, dict):
            raise ValueError(f"takes settings as `name: value`, of {known}")
        if unknown := [str(name) for name in value if name not in cls.model_fields]:
            raise ValueError(f"no such setting: {', '.join(unknown)} (there are {known})")
        return value
