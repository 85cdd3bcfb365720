"""Settings of the fields of requests that change answers beyond those that are in every key."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from warmup_lib.config.kinds import Section
from warmup_lib.keys import DIMENSION_FIELDS, Dimension

_WITHIN = ("extra.", "params.")


class DimensionConfig(Section):
    """One field's values, and which of them are one."""

    default: str = Field("", description="the value that absence means")
    synonyms: dict[str, str] = Field(
        default_factory=dict, description="value -> the value that it stands for"
    )

    @field_validator("synonyms")
    @classmethod
    def _lead_to_values(cls, value: dict[str, str]) -> dict[str, str]:
        if both := sorted(set(value) & set(value.values())):
            raise ValueError(f"{', '.join(both)} can't be both a synonym and what one stands for")
        return value

    def dimension(self) -> Dimension:
        """Return it as keys take it."""
        return Dimension(self.default, self.synonyms)


def _known(name: str) -> str:
    if name in DIMENSION_FIELDS or any(
        name.startswith(within) and len(name) > len(within) for within in _WITHIN
    ):
        return name
    raise ValueError(
        f"a dimension is one of {', '.join(DIMENSION_FIELDS)}, extra.NAME or params.NAME; "
        "docs/keys.md lists what is in every key already"
    )


Dimensions = dict[Annotated[str, AfterValidator(_known)], DimensionConfig]
"""Settings by field, named as `warmup dimensions` names it."""
