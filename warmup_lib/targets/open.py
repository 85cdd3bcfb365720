"""From settings to targets: the configured ones, or what the embedded stack runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from warmup_lib.config import Config, HostTarget, RedisTarget, warmup_home
from warmup_lib.errors import ConfigError
from warmup_lib.targets.address import check_host_url, check_key, check_redis_url
from warmup_lib.targets.base import Target
from warmup_lib.targets.host import ModelHost, as_host
from warmup_lib.targets.store import RedisStore, as_store


def open_targets(config: Config, names: Sequence[str] | None = None) -> list[Target]:
    """Return the configured targets, in their order; nothing is sent to them yet.

    Args:
        config: The settings.
        names: Only these.

    Raises:
        ConfigError: There are none, a name is unknown, or an address or key is missing or wrong.
    """
    settings = target_settings(config)
    if not settings:
        raise ConfigError("the configuration names no targets: add some, or write `embedded`")
    known = [setting.name for setting in settings]
    if doubled := sorted({name for name in known if known.count(name) > 1}):
        raise ConfigError(f"two targets have one name: {', '.join(doubled)}")
    if unknown := sorted(set(names or ()) - set(known)):
        raise ConfigError(f"no such target: {', '.join(unknown)}; there are {', '.join(known)}")
    return [_open(s, config) for s in settings if names is None or s.name in names]


def redis_url(config: Config, name: str | None = None) -> str:
    """Return the address of a Redis, for whoever reads it without a `RedisStore`.

    Args:
        config: The settings.
        name: Its name; None: the first one.

    Raises:
        ConfigError: There is none of this name, or its address is missing or wrong.
    """
    stores = [one for one in target_settings(config) if isinstance(one, RedisTarget)]
    found = [one for one in stores if name in (None, one.name)]
    if not found:
        known = ", ".join(one.name for one in stores) or "none"
        raise ConfigError(f"no such Redis{f': {name}' if name else ''}; there is {known}")
    _check_address(found[0])
    check_redis_url(found[0].name, found[0].url)
    return found[0].url


def target_settings(config: Config) -> Sequence[RedisTarget | HostTarget]:
    """Return the settings of the targets: the configured ones, or what the embedded stack runs.

    Raises:
        ConfigError: The embedded stack does not run.
    """
    return _embedded() if config.targets == "embedded" else config.targets


def _embedded() -> Sequence[RedisTarget | HostTarget]:
    from warmup_lib.stack import status

    state = status(warmup_home())
    found: list[RedisTarget | HostTarget] = []
    if state.redis is not None:
        found.append(RedisTarget(name=state.redis.name, url=state.redis.url))
    found += [
        HostTarget(kind="host", name=host.name, url=host.url, cache_salt="derived")
        for host in state.hosts
    ]
    if not found:
        raise ConfigError(
            "no target runs on this machine: run `warmup stack up`, or name targets in the "
            "configuration"
        )
    return found


def _check_address(setting: RedisTarget | HostTarget) -> None:
    if not setting.url:
        where = (
            f"its connection '{setting.connection}' can be read inside Airflow only"
            if setting.connection
            else "it has no url"
        )
        raise ConfigError(f"target '{setting.name}' has no address: {where}")


def _open(setting: RedisTarget | HostTarget, config: Config) -> Target:
    _check_address(setting)
    timeout_s = config.apply.timeout.total_seconds()
    if isinstance(setting, RedisTarget):
        check_redis_url(setting.name, setting.url)
        return RedisStore(setting.name, setting.url, timeout_s=timeout_s, batch=config.apply.batch)
    check_host_url(setting.name, setting.url)
    return ModelHost(
        setting.name,
        setting.url,
        api_key=_api_key(setting),
        models=setting.models,
        cache_salt=setting.cache_salt,
        concurrency=config.apply.concurrency,
        timeout_s=timeout_s,
    )


def _api_key(setting: HostTarget) -> str | None:
    if setting.api_key_env is None:
        return None
    key = os.environ.get(setting.api_key_env)
    if not key:
        raise ConfigError(
            f"target '{setting.name}' takes its key from {setting.api_key_env}, which is not set"
        )
    check_key(setting.name, setting.api_key_env, key)
    return key


def open_at(
    config: Config, *, host_url: str | None, redis_url: str | None
) -> tuple[ModelHost | None, RedisStore | None]:
    """Return the targets at these addresses, with the settings of configured ones where they are.

    Args:
        config: The settings.
        host_url: Address of a model host; None: none.
        redis_url: Address of a Redis; None: none.

    Raises:
        ConfigError: An address or a key is missing or wrong.
    """
    known = [] if config.targets == "embedded" else config.targets
    host = store = None
    if host_url is not None:
        bare = HostTarget(kind="host", name="host", url=host_url)
        named = [t for t in known if isinstance(t, HostTarget) and _same(t.url, host_url)]
        host = _open(next(iter(named), bare), config)
    if redis_url is not None:
        store = _open(RedisTarget(name="redis", url=redis_url), config)
    return (as_host(host) if host else None), (as_store(store) if store else None)


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


async def close_all(targets: Iterable[Target]) -> None:
    """Close targets."""
    for target in targets:
        await target.close()
