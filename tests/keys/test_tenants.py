"""What holds for all tenants: no key without one, and nothing that two of them share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.keys.reader import tenant
from tests.keys.strategies import KEYS, hostile, odd_texts, of, tenants, texts
from warmup_lib.errors import InputDataError
from warmup_lib.keys import FIELDS, Keys, Request, check_tenant

OTHER = Keys(b"another secret, sixteen bytes or more")


def builders(name: str, keys: Keys = KEYS) -> list[Callable[[], object]]:
    """Return all that builds a key, an index name, a digest or a salt of a tenant."""
    return [
        lambda: keys.scope(name),
        lambda: keys.key("responses", name, "0" * 32),
        lambda: keys.prefix("responses", name),
        lambda: keys.index("responses", name, "e"),
        lambda: keys.salt(name),
        lambda: keys.identity(Request(name, "m", "hello")),
    ]


@given(hostile)
def test_no_key_without_a_tenant(name: str) -> None:
    try:
        expected = tenant(name)
    except ValueError:
        for build in [lambda: check_tenant(name), *builders(name)]:
            with pytest.raises(InputDataError, match="tenant"):
                build()
        return
    assert check_tenant(name) == check_tenant(expected) == expected
    assert [b() for b in builders(name)] == [b() for b in builders(expected)]


@pytest.mark.parametrize("name", [None, 0, 1, True, b"acme", ["acme"], {"acme": 1}])
def test_a_tenant_is_a_text(name: Any) -> None:
    for build in builders(name):
        with pytest.raises(InputDataError, match="a tenant is needed"):
            build()


@given(tenants, tenants, odd_texts)
def test_two_tenants_share_nothing_but_the_text(one: str, other: str, text: str) -> None:
    assume(one != other)
    a, b = (of(tenant=t, prompt=text) for t in (one, other))
    assert a.text == b.text
    assert not {a.context, a.response, a.head} & {b.context, b.response, b.head}
    assert not {build() for build in builders(one)} & {build() for build in builders(other)}


@given(tenants, odd_texts)
def test_a_key_holds_no_content_and_nothing_that_redis_takes_for_a_pattern(
    name: str, text: str
) -> None:
    digest = of(tenant=name, prompt=text).response
    key = KEYS.key("responses:e", name, digest, model=text, adapter=text)
    assert re.fullmatch(r"wu1:[0-9a-f]{6}:[0-9a-f]{16}:responses:e:[0-9a-f]{12}:[0-9a-f]{32}", key)
    assert key.startswith(KEYS.index("responses", name, "e") + ":")
    assert key.startswith(KEYS.prefix("responses", name))


@given(st.lists(odd_texts, max_size=4))
def test_layers_and_domains_never_meet(parts: list[str]) -> None:
    digests = {KEYS.digest(domain, *parts) for domain in FIELDS}
    assert len(digests) == len(FIELDS)
    assert len({KEYS.key(word, "acme", "0" * 32) for word in FIELDS}) == len(FIELDS)


@given(texts, texts, texts)
def test_parts_do_not_run_into_each_other(a: str, b: str, c: str) -> None:
    assume(b)
    assert KEYS.digest("d", a, b + c) != KEYS.digest("d", a + b, c)
    assert KEYS.digest("d", a, b) != KEYS.digest("d", a + b)
    assert KEYS.digest("d", a, "") != KEYS.digest("d", a)
    assert KEYS.digest("d" + a, b) != KEYS.digest("d", a, b)


@given(hostile, hostile, hostile)
def test_a_salt_is_one_that_engines_take(name: str, adapter: str, template: str) -> None:
    name = f"a{name}b"
    assume(_is_one(name))
    keys = Keys(b"0" * 16, template)
    salt = keys.salt(name, adapter)
    assert re.fullmatch("[0-9a-f]{64}", salt)  # at most 128 characters, none of @ / \ NUL
    assert (salt == keys.salt(name)) is (adapter == "")
    assert (salt == Keys(b"0" * 16).salt(name, adapter)) is (template == "")
    assert salt != keys.salt(f"{name}x", adapter)


def _is_one(name: str) -> bool:
    try:
        return bool(tenant(name))
    except ValueError:
        return False


@given(tenants, odd_texts)
def test_another_secret_shares_no_key(name: str, text: str) -> None:
    a, b = (k.identity(Request(name, "m", text)) for k in (KEYS, OTHER))
    assert not set(vars(a).values()) & set(vars(b).values())
    assert not {b() for b in builders(name)} & {b() for b in builders(name, OTHER)}
    assert KEYS.secret_id != OTHER.secret_id
