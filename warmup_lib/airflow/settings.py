"""The configuration as Airflow sees it: cheap when a DAG file is parsed, complete in a task.

The file is the one named by `$WARMUP_CONFIG`, else `./warmup.yaml`, else the defaults. A target
that names an Airflow connection gets its address, login and key from there; the connection
`warmup_secret`, where there is one, holds the key secret as its password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from warmup_lib.config import Config, HostTarget, RedisTarget, load_config
from warmup_lib.errors import ConfigError

SECRET_CONNECTION = "warmup_secret"
GPU_TIMEOUT = timedelta(hours=2)


def load_dag_config() -> Config:
    """Return the configuration as it is written; what DAG files call while they are parsed."""
    path = os.environ.get("WARMUP_CONFIG")
    return load_config(Path(path) if path else None)


def gpu_task(config: Config) -> dict[str, Any]:
    """Return the arguments of a task that needs a GPU or a model host.

    The pool caps how many run at once, the queue picks workers that have a GPU, and the timeout
    frees both where a host hangs.
    """
    return {
        "pool": config.schedule.gpu_pool,
        "queue": config.schedule.gpu_queue,
        "execution_timeout": GPU_TIMEOUT,
    }


def target_names(config: Config) -> list[str]:
    """Return the configured targets' names; none where the embedded stack is used."""
    return [] if config.targets == "embedded" else [t.name for t in config.targets]


def enabled_layers(config: Config) -> list[str]:
    """Return the names of the layers that are switched on."""
    return config.layers.switched_on()


def task_config(targets: Sequence[str] | None = None) -> Config:
    """Return the configuration with connections resolved; only a running task can call it.

    The key secret and the hosts' keys go into this process's environment, where the library reads
    them: they are never part of the configuration, which is hashed and printed.

    Args:
        targets: Only these; None or none: all.

    Raises:
        ConfigError: A target names a connection that Airflow does not have.
    """
    config = load_dag_config()
    secret = _connection(SECRET_CONNECTION)
    if secret is not None and secret.password:
        os.environ[config.secret_env] = secret.password
    if config.targets == "embedded":
        return config
    chosen = [_connected(t) for t in config.targets if not targets or t.name in targets]
    return config.model_copy(update={"targets": chosen})


def _connected(target: RedisTarget | HostTarget) -> RedisTarget | HostTarget:
    if target.connection is None:
        return target
    found = _connection(target.connection)
    if found is None:
        raise ConfigError(
            f"target '{target.name}' names the Airflow connection '{target.connection}', which is "
            f"not defined: add it, or set AIRFLOW_CONN_{target.connection.upper()}"
        )
    if isinstance(target, RedisTarget):
        return target.model_copy(update={"url": redis_url(found)})
    changed: dict[str, Any] = {"url": http_url(found)}
    if found.password:
        name = re.sub(r"\W", "_", target.name).upper()
        variable = target.api_key_env or f"WARMUP_API_KEY_{name}"
        os.environ[variable] = found.password
        changed["api_key_env"] = variable
    return target.model_copy(update=changed)


def redis_url(connection: Any) -> str:
    """Return the URL of a `redis` connection; `ssl` in its extra asks for TLS, `db` for a number.

    Args:
        connection: An Airflow connection of type `redis`.
    """
    extra = connection.extra_dejson
    login = quote(connection.login or "", safe="")
    password = quote(connection.password or "", safe="")
    user = f"{login}:{password}@" if login or password else ""
    scheme = "rediss" if extra.get("ssl") else "redis"
    place = f"{connection.host or 'localhost'}:{connection.port or 6379}"
    return f"{scheme}://{user}{place}/{int(extra.get('db') or 0)}"


def http_url(connection: Any) -> str:
    """Return the base URL of an `http` connection, without a slash at its end.

    Args:
        connection: An Airflow connection of type `http`; its schema may be `https`.
    """
    host = (connection.host or "localhost").rstrip("/")
    # A connection given as the URI https://... has that as its type and no schema.
    scheme = connection.schema or ("https" if connection.conn_type == "https" else "http")
    base = host if "://" in host else f"{scheme}://{host}"
    return f"{base}:{connection.port}" if connection.port else base


def _connection(name: str) -> Any:
    try:
        return BaseHook.get_connection(name)
    except AirflowNotFoundException:
        return None
