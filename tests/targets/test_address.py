"""An address that can't be one is told by its target and part, and without its password."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from warmup_lib.config import Config, HostTarget, RedisTarget
from warmup_lib.errors import ConfigError
from warmup_lib.targets.address import check_host_url, check_redis_url
from warmup_lib.targets.open import close_all, open_targets

PARSED = "^target 't': the url can't be parsed: .*whether its password is percent-encoded"
SECRET = "swordfish"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://h:abc/0", PARSED),
        ("redis://h:99999/0", PARSED),
        ("redis://h:0/0", PARSED),
        ("redis://[::1/0", PARSED),
        ("redis://a..b/0", PARSED),
        ("redis://h:6379/0\n", PARSED),
        *((f"redis://u:{SECRET}{raw}1@h:6379/0", PARSED) for raw in "/[#?"),
        *((f"redis://12:1{raw}{SECRET}@h:6379/0", PARSED) for raw in "/[#?"),
        (f"redis://u:1?{SECRET}=1@h:6379/0", PARSED),
        ("redis://h:6379/x", "'t': its database is no number"),
        ("redis://h:6379/-1", "'t': its database is no number"),
        ("rediss://h/0?ssl_ca_cert=/ca.pem", "'t': not each option .* of rediss://: ssl_ca_cert$"),
        ("redis://h/0?timeout=3", "'t': not each option in the url is one of redis://: timeout$"),
        ("rediss://h/0?ssl_cert_reqs=maybe", "'t': an option in the url has a value"),
        ("rediss://h/0?ssl_ca_certs=/no/ca.pem", "'t': ssl_ca_certs names .* there: /no/ca.pem$"),
        ("rediss://h/0?ssl_keyfile=/no/key.pem", "'t': ssl_keyfile names .* there: /no/key.pem$"),
        ("http://h", "'t': the url must begin with redis://"),
    ],
)
def test_a_redis_that_no_url_names(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        open_targets(Config(targets=[RedisTarget(name="t", url=url)]))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:99999999",
        "http://127.0.0.1:0",
        "http://h:abc",
        "http://[::1",
        "http://a\tb",
        "http://h\n",
        "http://:80",
        "http://a..b",
        f"http://u:{SECRET}/1@h:80",
    ],
)
def test_a_host_that_no_url_names(url: str) -> None:
    with pytest.raises(ConfigError, match=PARSED) as caught:
        open_targets(Config(targets=[HostTarget(kind="host", name="t", url=url)]))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", [f"{SECRET}\u00e9", f"{SECRET}\n", f" {SECRET}", f"a\x00{SECRET}"])
def test_a_key_that_no_header_holds(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"TEST_HOST_KEY": key})  # the real one holds no NUL
    host = HostTarget(kind="host", name="t", url="http://h", api_key_env="TEST_HOST_KEY")
    with pytest.raises(ConfigError, match="'t': the key in TEST_HOST_KEY holds") as caught:
        open_targets(Config(targets=[host]))
    assert SECRET not in str(caught.value)


def test_addresses_that_are_right(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    for url in (
        "redis://h",
        "REDIS://h:6379/",
        "redis://u:a%2Fb%5B@h:6379/3",
        "redis://[::1]:6379/0?socket_timeout=3&health_check_interval=5",
        f"rediss://:p@h/0?ssl_ca_certs={ca}&ssl_cert_reqs=none",
        "unix:///run/redis.sock?db=3",
        "unix://u:p@/run/redis.sock",
    ):
        check_redis_url("t", url)
    for url in ("http://h", "https://h:8443/gateway/", "http://[::1]:80", "http://b\u00fccher.de"):
        check_host_url("t", url)
    right = [
        RedisTarget(name="r", url="redis://h"),
        HostTarget(kind="host", name="h", url="http://h"),
    ]
    asyncio.run(close_all(open_targets(Config(targets=right))))
