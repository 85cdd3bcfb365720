"""A Redis is reached by TLS and by a login that may do no more than the planner does."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.layers.building import (
    DictVectors,
    axis,
    context,
    demand,
    items,
    lookup,
    new_keys,
    prompt,
)
from tests.targets.own_redis import embedded, own_redis
from warmup_lib.errors import StoreUnavailable
from warmup_lib.layers.base import Layer
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.layers.responses import Responses
from warmup_lib.search import Point
from warmup_lib.stack.state import StackState
from warmup_lib.targets.nearby import (
    drop_others,
    ensure_answer_index,
    ensure_vector_index,
    nearest,
)
from warmup_lib.targets.store import Entry, RedisStore
from warmup_lib.targets.used import keep_most_used

pytestmark = pytest.mark.stack
GUIDE = Path(__file__).parents[2] / "docs" / "operate.md"


def use(url: str, work: Callable[[RedisStore], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        store = RedisStore("cache", url, timeout_s=10)
        try:
            return await work(store)
        finally:
            await store.close()
            await asyncio.sleep(0.05)  # asyncio closes what failed to shake hands in a later turn

    return asyncio.run(inside())


async def write_and_read(store: RedisStore) -> Any:
    await store.write([Entry("wu1:x", b"value", 60)])
    return await store.look(["wu1:x"])


# -- TLS ---------------------------------------------------------------------------------------


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a key and a certificate for 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, format_ = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key_file, certificate_file = folder / f"{name}.key", folder / f"{name}.pem"
    key_file.write_bytes(key.private_bytes(pem, format_, serialization.NoEncryption()))
    certificate_file.write_bytes(made.public_bytes(pem))
    return key_file, certificate_file


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A Redis that answers by TLS only, asking for a certificate and a password; its folder."""
    # The embedded server has no TLS. Debian's has, and is one program with its tools under another
    # name; its own package would also start a server on this machine.
    tool = shutil.which("redis-check-rdb")
    assert tool, "Debian's redis-tools is needed: `make test-system` installs it"
    folder = tmp_path_factory.mktemp("tls")
    program = folder / "redis-server"
    program.symlink_to(tool)
    key, pem = certificate(folder, "server")
    client_key, client_pem = certificate(folder, "client")
    certificate(folder, "stranger")
    (folder / "both.pem").write_bytes(pem.read_bytes() + client_pem.read_bytes())
    settings = ["--tls-cert-file", str(pem), "--tls-key-file", str(key)]
    settings += ["--tls-ca-cert-file", str(folder / "both.pem"), "--requirepass", "a pass"]
    ours = f"ssl_certfile={client_pem}&ssl_keyfile={client_key}"
    query = f"?ssl_ca_certs={pem}&{ours}"
    with own_redis([str(program)], folder, *settings, tls=True, query=query) as url:
        yield url, folder


def test_a_rediss_url_writes_by_tls_with_a_client_certificate(tls: tuple[str, Path]) -> None:
    url = tls[0].replace("://", "://:a%20pass@")
    [seen] = use(url, write_and_read)
    assert (seen.bytes, seen.ttl_s) == (5, 60)
    assert use(url, lambda store: store.facts()).search is False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url, _: url.replace("://", "://:wrong@"), "it refuses the login"),
        (lambda url, _: url, "it refuses the login"),
        (
            lambda url, folder: re.sub(
                r"ssl_ca_certs=[^&]*", f"ssl_ca_certs={folder}/stranger.pem", url
            ),
            "no connection: TLS fails, its certificate is not trusted",
        ),
        (lambda url, _: url.split("?")[0], "no connection: TLS fails, its certificate is not"),
        (lambda url, _: url.replace("rediss:", "redis:").split("?")[0], "no connection"),
    ],
)
def test_what_is_wrong_is_told_without_a_secret(
    tls: tuple[str, Path], change: Callable[[str, Path], str], reason: str
) -> None:
    with pytest.raises(StoreUnavailable, match=reason) as caught:
        use(change(*tls), write_and_read)
    assert "wrong" not in str(caught.value)


# -- rights ------------------------------------------------------------------------------------


@pytest.fixture
def limited(
    stack_redis: StackState, stack_artifacts: Path, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """A Redis with search and the login of docs/operate.md: its URL as that, and as everybody."""
    assert stack_redis.redis is not None  # so that its programs are there
    found = re.search(r"^user planner (?:.*\\\n)*.*", GUIDE.read_text(encoding="utf-8"), re.M)
    assert found, "docs/operate.md shows no ACL line"
    words = found[0].replace("\\\n", " ").split()[2:]
    with own_redis(embedded(stack_artifacts), tmp_path) as url:
        with redis.Redis.from_url(url) as client:
            client.execute_command("ACL", "SETUSER", "planner", *words)
        yield url.replace("://", "://planner:PASSWORD@"), url


def warm_and_find(layer: Layer) -> Callable[[RedisStore], Awaitable[Any]]:
    keys = new_keys()
    held = {keys.text_digest("Hello there"): axis(0), keys.text_digest("hello you"): axis(0)}
    ctx = context(keys, DictVectors(held=held))
    planned = items(layer, demand([prompt(keys, "acme", "Hello there")]))

    async def work(store: RedisStore) -> Any:
        for _ in range(2):  # the second time the index is there
            outcomes = await layer.warm(planned, store, ctx)
        proofs = await layer.prove(planned, store, ctx)
        asked = [lookup(keys, "acme", text) for text in ("Hello there", "hello you")]
        matches = await layer.find(asked, store, ctx)
        return outcomes[0].status, proofs[0].resident, [m.match for m in matches]

    return work


def test_the_documented_rights_are_enough(limited: tuple[str, str]) -> None:
    url, _ = limited
    assert use(url, warm_and_find(Responses())) == ("warmed", True, ["exact", "semantic"])
    assert use(url, warm_and_find(Embeddings())) == ("warmed", True, ["exact", None])

    async def rest(store: RedisStore) -> Any:
        await store.set_generation("plan-1")
        await ensure_vector_index(store, "wu1:v", 1)
        await store.write([Entry("wu1:v:1", {"vector": b"\0\0\x80?"}, 60)])
        [[near]] = await nearest(store, [Point("wu1:v", b"\0\0\x80?")], 1, ("vector",))
        await keep_most_used(store, "wu1:uses", {"wu1:v:1": 1}, 1)
        await keep_most_used(store, "wu1:uses", {"wu1:v:2": 1}, 1)
        facts = await store.facts()
        left = await drop_others(store, ["wu1:v:"], ())
        return await store.generation(), near.key, facts.search, left, bool(await store.epoch())

    assert use(url, rest) == ("plan-1", "wu1:v:1", True, 0, True)


def test_an_index_of_an_older_version_can_be_completed(limited: tuple[str, str]) -> None:
    url, everybody = limited
    with redis.Redis.from_url(everybody) as client:
        old = "FT.CREATE wu1:old ON HASH PREFIX 1 wu1:old SCHEMA context TAG"
        client.execute_command(*old.split())
    use(url, lambda store: ensure_answer_index(store, "wu1:old", 2))


def test_the_rights_end_at_our_keys_and_commands(limited: tuple[str, str]) -> None:
    url, everybody = limited
    with redis.Redis.from_url(everybody) as client:
        client.set("theirs", "x")
    with pytest.raises(StoreUnavailable, match="may not run a command"):
        use(url, lambda store: store.write([Entry("theirs", b"x", 60)]))
    with redis.Redis.from_url(url) as client:
        for command in ("GET theirs", "FLUSHALL", "CONFIG SET maxmemory 1", "KEYS *", "ACL LIST"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command.split())
    with redis.Redis.from_url(everybody) as client:
        assert client.get("theirs") == b"x"
