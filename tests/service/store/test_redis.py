"""The store in Redis: lost data, lost replies, Redis' own time, and settings under which it would lose usage."""

import asyncio
import contextlib
import itertools
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from service.store.conftest import CACHE_BYTES, NOW, Opens
from support.redis_server import RedisServer
from support.store_client import NOVEMBER, Client, begin, begins, finish, result
from support.time_limit import until

from proxy import config, errors
from proxy.kit.clock import ManualClock
from proxy.store import open as opening
from proxy.store.protocol import Account, Busy, Found, Refused, Reserved, Want
from proxy.store.redis import RedisStore

LIMIT = 300
TWO = [Reserved(None)] * 2


@pytest.fixture
def kind() -> str:
    return "redis"


@pytest.fixture
def inside(redis_server: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        yield client


class Load:
    """Callers of two processes, as many as may; each of them is billed for a part between `begin` and `finish`."""

    def __init__(self, *clients: Client) -> None:
        self._clients = clients
        self._ids = itertools.count()
        self._account = Account("erp", "2023-11", LIMIT)
        self.billed = 0

    async def run(self) -> set[type]:
        """Go on until nothing more is reserved; return what the callers ended with."""
        ends = await asyncio.gather(*(self._call(client) for client in self._clients for _ in range(4)))
        return {type(end) for end in ends}

    async def _call(self, client: Client) -> object:
        while True:
            id = f"id {next(self._ids)}"
            try:
                outcome = await client.begin(id, id, accounts=[self._account])
            except errors.StoreUnavailable:
                continue  # Redis is not there: later
            if not isinstance(outcome, Reserved):
                return outcome
            self.billed += 1
            await self._finish(client, id)

    async def _finish(self, client: Client, id: str) -> None:
        while True:
            with contextlib.suppress(errors.StoreUnavailable):
                return await client.finish(id, result(id, f"uid of {id}"), accounts=[self._account])


@pytest.mark.parametrize("is_killed", [False, True])
async def test_after_a_loss_nothing_is_billed_until_usage_is_set(
    needs_program: Callable[[str], str], tmp_path: Path, time: ManualClock, is_killed: bool
) -> None:
    """By FLUSHALL, and by `kill -9` with a restart from an older snapshot."""
    with RedisServer(needs_program("redis-server"), tmp_path) as server:
        stores = [await RedisStore.open(server.url, time, name, CACHE_BYTES) for name in ("one", "two")]
        clients = [Client(store, time) for store in stores]
        load = Load(*clients)
        running = asyncio.create_task(load.run())
        await until(lambda: load.billed >= LIMIT // 4)
        shutil.copytree(tmp_path / "appendonlydir", tmp_path / "snapshot")
        await until(lambda: load.billed >= LIMIT // 2)
        if is_killed:
            server.kill()
            shutil.rmtree(tmp_path / "appendonlydir")
            shutil.copytree(tmp_path / "snapshot", tmp_path / "appendonlydir")
            server.start()
        else:
            server.empty()
        assert await running == {errors.StoreUnavailable}
        before = load.billed
        assert before < LIMIT
        assert await load.run() == {errors.StoreUnavailable}
        assert load.billed == before
        await stores[1].set_usage(NOVEMBER, load.billed)
        assert await load.run() == {Refused}
        assert load.billed == LIMIT
        assert await clients[0].counts() == (LIMIT, 0, 0)
        for store in stores:
            await store.aclose()


async def test_each_account_waits_for_its_own_usage(open_client: Opens, redis_server: RedisServer) -> None:
    one, other = await open_client(), await open_client()
    others = Account("crm", "2023-11", 100)
    free_key = Account("key", "2023-11")
    await one.begin("a", "k")
    await one.begin("b", "l", accounts=[others])
    await other.store.put_value("a", "", 1)
    for _ in range(5):
        await one.store.put_value("a", "", 1)  # the processes have seen different numbers
    redis_server.empty()
    for client in (other, one):
        with pytest.raises(errors.StoreUnavailable, match="usage --set"):
            raise await client.begin("c", "k")
        assert await client.begin("c", Want("free", 9, 0)) == Reserved(None)
    await other.store.set_usage(NOVEMBER, 40)
    await one.finish("a", result("k", "u"))  # begun before: part of the 40
    assert await other.counts() == (40, 0, 0)
    assert await one.begin("d", "m", accounts=[NOVEMBER, free_key]) == Reserved(None)
    limited_key = free_key._replace(limit=5)
    for accounts in ([others], [free_key], [NOVEMBER, limited_key]):
        assert isinstance(await one.begin("e", "n", accounts=accounts), errors.StoreUnavailable)
    await one.store.set_usage(others, 0)
    await other.store.set_usage(limited_key, 5)
    assert await other.begin("f", "n", accounts=[others]) == Reserved(None)
    assert await other.begin("g", "o", accounts=[limited_key]) == Refused(limited_key, 0, 1)
    await one.finish("d")
    assert await other.counts() == (41, 0, 0)


async def test_what_is_stored_after_a_loss_stays_when_another_process_starts(
    client: Client, open_client: Opens, redis_server: RedisServer
) -> None:
    redis_server.empty()
    assert isinstance(await client.begin("a", "k"), errors.StoreUnavailable)
    await client.store.set_usage(NOVEMBER, 0)
    await client.fetch(result("k", "u"))
    await open_client()
    assert await client.stored("k")


async def test_what_a_snapshot_has_reserved_is_no_more(client: Client, inside: Any) -> None:
    await client.begin("a", Want("k", 3))
    inside.hset("{v3bridge}:state", "counter", 0)  # as before the process saw more
    assert isinstance(await client.begin("b", "l"), errors.StoreUnavailable)
    await client.store.set_usage(NOVEMBER, 40)
    assert await client.begin("c", "k") == Reserved(None)
    await client.finish("a", used=3)
    assert await client.counts() == (40, 0, 1)


async def test_a_process_that_starts_after_a_loss_knows_of_it(open_client: Opens, redis_server: RedisServer) -> None:
    client = await open_client()
    redis_server.empty()
    await client.store.put_value("a", "", 1)
    later = await open_client()
    assert isinstance(await later.begin("a", "k"), errors.StoreUnavailable)
    await later.store.set_usage(NOVEMBER, 1)
    assert await later.begin("b", "k") == Reserved(None)
    redis_server.empty()
    assert isinstance(await later.begin("c", "l"), errors.StoreUnavailable)


class Cut:
    """A way to Redis that is cut as soon as Redis has run a script, before its reply comes back: `times` times, after
    `whole` scripts whose replies came back. The next scripts are `held` until those events, if any, and the replies of
    the next ones are `late` until those."""

    def __init__(self, redis: str, folder: Path) -> None:
        self._redis = redis.removeprefix("unix://")
        self.path = folder / "cut.sock"
        self.url = f"unix://{self.path}"
        self.times = self.whole = 0
        self.held: list[asyncio.Event | None] = []
        self.late: list[asyncio.Event] = []

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_redis, to_redis = await asyncio.open_unix_connection(self._redis)
        while request := await reader.read(2**16):
            if b"EVALSHA" in request and self.held and (held := self.held.pop(0)):
                await held.wait()
            to_redis.write(request)
            reply = await from_redis.read(2**16)
            if self.late and b"EVALSHA" in request:
                await self.late.pop().wait()
            if self.times and b"EVALSHA" in request:
                if self.whole == 0:
                    self.times -= 1
                    break
                self.whole -= 1
            writer.write(reply)
        to_redis.close()
        writer.close()


@pytest.fixture
async def cut(redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[Cut]:
    way = Cut(redis_server.url, tmp_path)
    async with await asyncio.start_unix_server(way.connect, way.path):
        yield way


@pytest.fixture
async def cut_client(open_client: Opens, cut: Cut) -> Client:
    """A process whose way to Redis can be cut."""
    return await open_client(at=cut.url)


@pytest.mark.parametrize("whole", [0, 1], ids=["reads", "writes"])
@pytest.mark.parametrize("times", [1, 2])
async def test_what_is_sent_again_after_a_lost_reply_changes_nothing(
    cut: Cut, cut_client: Client, times: int, whole: int
) -> None:
    async def sent() -> Any:
        return await cut_client.store.begin(begins("a", Want("k", 3), "l", time=cut_client.time))

    async def ended() -> None:
        ends = finish("a k", result("k", "u", "v", asked=3), used=2), finish("a l", key="l", used=0)
        await cut_client.store.finish(ends)

    for call, expected in ((sent, (0, 0, 4)), (ended, (2, 0, 0))):
        cut.times, cut.whole = times, whole  # the library sends once more by itself
        with contextlib.nullcontext() if times == 1 else pytest.raises(errors.StoreUnavailable):
            await call()
        assert cut.times == 0
        assert await call() in (TWO, None)
        assert await cut_client.counts() == expected
    stored = result("k", "u", "v", asked=3, fetched=NOW, part_ids=(None, None))
    assert await cut_client.begin("c", "k") == Found(stored)


@pytest.mark.parametrize("is_known", [True, False])
async def test_nothing_is_reserved_with_what_was_read_before_a_loss(
    cut: Cut, cut_client: Client, redis_server: RedisServer, is_known: bool
) -> None:
    cut.late.append(late := asyncio.Event())
    beginning = asyncio.create_task(cut_client.begin("a", "k"))
    await until(lambda: not cut.late)
    redis_server.empty()
    if is_known:
        await cut_client.store.put_value("a", "", 1)  # the process learns of the loss before it has the reply
    late.set()
    assert isinstance(await beginning, errors.StoreUnavailable)


async def test_late_reply_makes_no_process_forget_what_it_has_seen(cut: Cut, cut_client: Client, inside: Any) -> None:
    cut.late.append(late := asyncio.Event())
    reading = asyncio.create_task(cut_client.store.values(["a"]))
    await until(lambda: not cut.late)
    await cut_client.store.put_value("a", "", 1)
    late.set()
    await reading
    inside.hincrby("{v3bridge}:state", "counter", -1)  # as before the value was put
    assert isinstance(await cut_client.begin("a", "k"), errors.StoreUnavailable)


async def test_a_result_that_answers_another_key_too_is_found_though_it_came_after_its_look_up(
    client: Client, cut: Cut, cut_client: Client
) -> None:
    await client.begin("a", "general")
    cut.late.append(late := asyncio.Event())
    beginning = asyncio.create_task(cut_client.begin("b", "exact"))
    await until(lambda: not cut.late)
    await client.finish("a", result("general", "u"), result("exact", "u"))
    late.set()
    assert isinstance(await beginning, Found)
    assert await client.counts() == (1, 0, 0)


async def test_begin_that_redis_has_after_its_finish_reserves_nothing(cut: Cut, cut_client: Client) -> None:
    late = asyncio.Event()
    cut.held = [None, late]  # one reads, the other writes what is reserved
    beginning = asyncio.create_task(cut_client.begin("a", Want("k", 3)))
    await until(lambda: not cut.held)
    await cut_client.finish("a", used=0)
    late.set()
    assert (await beginning, await cut_client.counts()) == (Busy(), (0, 0, 0))


async def test_usage_is_set_once_where_a_reply_is_lost(cut: Cut, cut_client: Client) -> None:
    await cut_client.store.set_usage(NOVEMBER, 60)
    cut.times = cut.whole = 1
    await cut_client.store.set_usage(NOVEMBER, 40)
    assert (cut.times, await cut_client.counts()) == (0, (40, 0, 0))


async def test_times_are_those_of_redis(redis_server: RedisServer, time: ManualClock) -> None:
    """A result is as old for a machine whose clock is behind as for the one that stored it."""
    clocks = time, ManualClock(NOW - 7200)
    one, behind = [Client(await RedisStore.open(redis_server.url, each, "", CACHE_BYTES), each) for each in clocks]
    await one.begin("a", "k")
    await one.finish("a", result("k", "u")._replace(fetched=NOW - 60))
    for client in (one, behind):
        now = client.time.now()
        found = await client.begin("b", "k", fresh_from=now - 100)
        assert isinstance(found, Found)
        assert found.result.fetched == pytest.approx(now - 60, abs=30)
        assert await client.begin(f"c {now}", "k", fresh_from=now - 50) != found
    assert await one.store.put_value("ends", "soon", 0.05)
    async with asyncio.timeout(30):
        while await behind.store.values(["ends"]) != [None]:
            await asyncio.sleep(0)
    await one.store.aclose()
    await behind.store.aclose()


async def test_usage_is_booked_where_results_do_not_fit(client: Client, inside: Any) -> None:
    await client.begin("x", "k", "l")
    inside.config_set("maxmemory", 1)
    try:
        assert await client.begin("c", "m") == Reserved(None)
        await client.finish("x k", result("k", "u"))
    finally:
        inside.config_set("maxmemory", 0)
    await client.finish("x l", result("l", "v"))
    assert await client.counts() == (2, 0, 1)
    assert [type(outcome) for outcome in await client.begin("d", "k", "l")] == [Reserved, Found]


async def test_data_of_another_version_keep_usage_and_what_was_reserved(
    open_client: Opens, client: Client, inside: Any
) -> None:
    await client.begin("a", "k")
    await client.begin("b", "l")
    await client.finish("a", result("k", "u"))
    inside.hset("{v3bridge}:state", "version", 0)
    inside.hset("{v3bridge}:reservation", '["b"]', b"of another version")
    later = await open_client()
    assert await later.counts() == (1, 1, 0)
    assert await later.begin("c", "k", "l") == TWO


async def test_what_was_reserved_is_counted_whenever_the_change_of_a_version_was_broken_off(
    open_client: Opens, client: Client, cut: Cut, inside: Any
) -> None:
    await client.begin("a", "k")
    inside.hset("{v3bridge}:state", "version", 0)
    for times in (2, 1):  # the library sends once more by itself
        cut.times, cut.whole = times, 2 - times
        with pytest.raises(errors.StoreUnavailable) if times == 2 else contextlib.nullcontext():
            await open_client(at=cut.url)
    assert await client.counts() == (0, 1, 0)


async def test_all_keys_are_in_one_slot(client: Client, inside: Any) -> None:
    await client.fetch(result("k", "u"))
    await client.store.put_value("lease", "worker", 10.0)
    assert {key[: len("{v3bridge}:")] for key in inside.scan_iter()} == {"{v3bridge}:"}
    assert 0 < inside.ttl('{v3bridge}:value:["lease"]') <= 10


@pytest.mark.parametrize(
    "setting,value,advice", [("appendonly", "no", "appendonly yes"), ("maxmemory-policy", "volatile-lru", "noeviction")]
)
async def test_a_redis_that_would_lose_usage_is_refused(
    needs_program: Callable[[str], str], tmp_path: Path, time: ManualClock, setting: str, value: str, advice: str
) -> None:
    with (
        RedisServer(needs_program("redis-server"), tmp_path, {setting: value}) as server,
        pytest.raises(errors.ConfigError, match=advice),
    ):
        await RedisStore.open(server.url, time, "worker", CACHE_BYTES)


async def test_a_redis_that_still_loads_its_data_is_unavailable(tmp_path: Path, time: ManualClock) -> None:
    """Its log is not enabled meanwhile."""
    info = b"# Persistence\r\nloading:1\r\naof_enabled:0\r\n"

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.read(2**16):
            if b"HELLO" in request:
                writer.write(b"%1\r\n$5\r\nproto\r\n:3\r\n")
            elif b"CLIENT" in request:
                writer.write(b"+OK\r\n" * request.count(b"CLIENT"))
            elif b"INFO" in request:
                writer.write(b"$%d\r\n%s\r\n" % (len(info), info))
            else:
                writer.write(b"-LOADING Redis is loading the dataset in memory\r\n")
        writer.close()

    async with await asyncio.start_unix_server(connect, tmp_path / "loading.sock"):
        with pytest.raises(errors.StoreUnavailable, match="BusyLoading"):
            await RedisStore.open(f"unix://{tmp_path}/loading.sock", time, "worker", CACHE_BYTES)


async def test_errors_do_not_show_the_password(tmp_path: Path, time: ManualClock) -> None:
    for url in (f"unix://:passw0rd@{tmp_path}/nobody.sock", "redis://:passw0rd@localhost:port/0"):
        with pytest.raises(errors.StartError, match="store") as caught:
            await opening.open_store(config.StoreUrl(url), time, worker="worker", cache_bytes=CACHE_BYTES)
        assert "passw0rd" not in repr((caught.value, caught.value.__cause__))


async def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, time: ManualClock) -> None:
    monkeypatch.setitem(sys.modules, "proxy.store.redis", None)
    with pytest.raises(errors.ConfigError, match=r"store: Redis needs another package; .*\[redis\]"):
        await opening.open_store(config.StoreUrl("redis://localhost/0"), time, worker="", cache_bytes=CACHE_BYTES)


async def test_a_limit_holds_over_processes_beside_begins_without_one(open_client: Opens, time: ManualClock) -> None:
    """Two applications of a client id, of which one has no limit."""
    clients = [await open_client(), await open_client()]
    limited, free = Account("erp", "2023-11", 3), Account("erp", "2023-11")

    async def ask(client: Client, name: str) -> Any:
        first = begin(f"{name} 1", Want(f"{name} 1", 3), time=time, accounts=[limited])
        return await client.store.begin([first, begin(f"{name} 2", Want(f"{name} 2", 5), time=time, accounts=[free])])

    outcomes = await asyncio.gather(*map(ask, clients, "ab"))
    assert sorted(type(each).__name__ for each, _ in outcomes) == ["Refused", "Reserved"]
    assert [each for _, each in outcomes] == TWO
    assert await clients[0].counts() == (0, 0, 13)
