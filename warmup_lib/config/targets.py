"""Settings of the targets: each place that gets warm, with its address."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from warmup_lib.config.kinds import Section

Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="what this target is called: letters, digits, `.`, `_`, `-`; at most 64",
    ),
]


class RedisTarget(Section):
    """A Redis that gets warm."""

    kind: Literal["redis"] = "redis"
    name: Name
    url: str = Field("", description="redis:// or rediss://; TLS and ACL through the URL")
    connection: str | None = Field(None, description="Airflow connection that replaces the URL")


class HostTarget(Section):
    """A model host that gets warm."""

    kind: Literal["host"]
    name: Name
    url: str = Field("", description="http://host:port, without /v1")
    connection: str | None = Field(None, description="Airflow connection that replaces the URL")
    api_key_env: str | None = Field(None, description="environment variable that holds its key")
    models: dict[str, str] = Field(
        default_factory=dict,
        description="name in the log -> name served here. A model goes by its own name; an adapter "
        "is planned for only where it is named here or in layers.adapters.folders",
    )
    cache_salt: Literal["none", "as-logged", "derived"] = Field(
        "as-logged", description="what the gateway sends as cache_salt: see docs/keys.md"
    )


Target = Annotated[RedisTarget | HostTarget, Field(discriminator="kind")]
