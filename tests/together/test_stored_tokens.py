"""Tests of stored tokens: encrypted if a key is set; Redis is used over TLS."""

import base64
import io
import secrets
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import redis
from support import running_proxy
from support.certificates import CertificateAuthority
from support.redis_server import RedisServer
from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.upstream.auth import token_store

JWT = b"eyJhbGciOi"  # how its header begins; three letters may be those of another text
Contents = Callable[[], bytes]


def store_key() -> config.StoreKey:
    """Fixture: encryption key, as made by `openssl rand -base64 32`."""
    return config.StoreKey(base64.b64encode(secrets.token_bytes(32)).decode())


OLD, NEW, OTHER = store_key(), store_key(), store_key()


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Contents]:
    """Fixture: value of the setting `store`, and a reader of all its content."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/state.sqlite", lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir())
    server: RedisServer = request.getfixturevalue("redis_server")

    def kept() -> bytes:
        with redis.Redis.from_url(server.url) as client:
            return b"".join(b"".join(client.hvals(key)) for key in client.scan_iter("*token:*"))

    return server.url, kept


@pytest.fixture
def asks(store: tuple[str, Contents]) -> Callable[..., Awaitable[None]]:
    """StartEnvironment a service on the store with some keys, and has it answer once."""

    async def ask(environment: ProxyEnvironment, *keys: config.StoreKey) -> None:
        account = environment.sandbox.default_application
        own = {"client_id": config.ClientId(account.client_id), "client_secret": config.Secret(account.client_secret)}
        chosen = running_proxy.settings(
            environment.sandbox.graphql_url,
            environment.sandbox.token_url,
            store=store[0],
            store_key=keys,
            application=own,
        )
        async with running_proxy.running(chosen, environment.time) as proxy:
            assert (await proxy.get(target({"mpn": "SN74S74N"}))).status == 200

    return ask


async def test_stored_token_is_encrypted_and_survives_a_restart(
    environment: ProxyEnvironment, store: tuple[str, Contents], asks: Callable[..., Awaitable[None]]
) -> None:
    for _ in range(2):
        await asks(environment, OLD)
    assert JWT not in store[1]()
    assert b"fernet:" in store[1]()
    assert environment.sandbox.request_counts.tokens == 1


async def test_unencrypted_stored_token_is_replaced(
    environment: ProxyEnvironment, store: tuple[str, Contents], asks: Callable[..., Awaitable[None]]
) -> None:
    await asks(environment)
    assert JWT in store[1]()
    await asks(environment, OLD)
    assert b"fernet:" in store[1]()
    assert environment.sandbox.request_counts.tokens == 2


async def test_encryption_key_rotation_keeps_the_token(
    environment: ProxyEnvironment, asks: Callable[..., Awaitable[None]]
) -> None:
    await asks(environment, OLD)
    await asks(environment, NEW, OLD)
    assert environment.sandbox.request_counts.tokens == 1


@pytest.mark.parametrize("keys", [(OTHER,), ()], ids=["another key", "no key"])
async def test_undecryptable_token_is_requested_again(
    environment: ProxyEnvironment,
    asks: Callable[..., Awaitable[None]],
    log_output: io.StringIO,
    keys: tuple[config.StoreKey, ...],
) -> None:
    await asks(environment, OLD)
    await asks(environment, *keys)
    await asks(environment, *keys)
    assert environment.sandbox.request_counts.tokens == 2
    assert log_output.getvalue().count("stored token ignored") == 1


async def test_only_the_refused_token_is_removed() -> None:
    """The ciphertext differs at each encryption."""
    time = clock.ManualClock()
    tokens = token_store.EncryptedTokenStore(MemoryStore(time), (OLD,))
    until = time.now() + 60
    await tokens.keep_token("demo", "a-token", until)
    await tokens.drop_token("demo", "another-token")
    assert await tokens.token("demo") == ("a-token", until)
    await tokens.drop_token("demo", "a-token")
    assert await tokens.token("demo") is None


@pytest.fixture
def tls_redis(needs_program: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """A redis-server that speaks TLS and asks for a client's certificate; its URL."""
    authority = CertificateAuthority(tmp_path)
    (cert, key), (own_cert, own_key) = authority.issue("redis"), authority.issue("v3bridge")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "bind": "127.0.0.1",
        "tls-port": str(port),
        "tls-cert-file": str(cert),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(authority.ca_file),
    }
    folder = Path(tempfile.mkdtemp(prefix="v3bridge-"))
    server = RedisServer(needs_program("redis-server"), folder, settings)
    server.start()
    own = f"ssl_ca_certs={authority.ca_file}&ssl_certfile={own_cert}&ssl_keyfile={own_key}"
    yield f"rediss://127.0.0.1:{port}/0?{own}"
    server.stop()
    shutil.rmtree(folder)


async def test_redis_store_works_over_tls(start: StartEnvironment, tls_redis: str) -> None:
    async with start(store=tls_redis, application={"parts": 100}) as environment:
        reply = await environment.get(target({"mpn": "SN74S74N"}))
        assert (reply.status, reply.headers["x-parts-used"]) == (200, reply.headers["x-parts-cost"])
        assert (await environment.get("/readyz")).status == 200


async def test_redis_with_untrusted_certificate_is_refused(
    start: StartEnvironment, tls_redis: str, tmp_path: Path
) -> None:
    (tmp_path / "foreign").mkdir()
    foreign = CertificateAuthority(tmp_path / "foreign").ca_file
    url = tls_redis.replace(f"ssl_ca_certs={tmp_path}/ca.pem", f"ssl_ca_certs={foreign}")
    async with start(store=url, application={"parts": 100}) as environment:
        assert (await environment.get(target({"mpn": "SN74S74N"}))).status == 503
        reasons = (await environment.get("/readyz")).json["reasons"]
        assert [each["check"] for each in reasons if each["check"] == "store"] == ["store"]
