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
from service.store.conftest import CACHE_BYTES, NOW
from support.redis_server import RedisServer
from support.store_client import NOVEMBER, begin, counts, finish, one, result

from proxy import config, errors
from proxy.kit.clock import ManualClock
from proxy.store import open as opening
from proxy.store.protocol import Account, Busy, Found, Refused, Reserved, Want
from proxy.store.redis import RedisStore

Opens = Callable[..., Any]
LIMIT = 300


@pytest.fixture
def kind() -> str:
    return "redis"


@pytest.fixture
def inside(redis_server: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
def lasting(needs_program: Callable[[str], str], tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may kill."""
    server = RedisServer(needs_program("redis-server"), tmp_path)
    server.start()
    yield server
    server.stop()


class Load:
    """Callers of two processes, as many as may; each of them is billed for a part between `begin` and `finish`."""

    def __init__(self, *stores: RedisStore, time: ManualClock) -> None:
        self._stores = stores
        self._time = time
        self._ids = itertools.count()
        self._account = Account("erp", "2023-11", LIMIT)
        self.billed = 0
        self.progress = asyncio.Condition()

    async def run(self) -> list[object]:
        """Go on until nothing more is reserved; return what each caller ended with."""
        return await asyncio.gather(*(self._call(store) for store in self._stores for _ in range(4)))

    async def until(self, billed: int) -> None:
        async with self.progress:
            await self.progress.wait_for(lambda: self.billed >= billed)

    async def _call(self, store: RedisStore) -> object:
        while True:
            id = f"id {next(self._ids)}"
            try:
                outcome = await one(store, begin(id, id, time=self._time, accounts=[self._account]))
            except errors.StoreUnavailable:
                continue  # Redis is not there: later
            if not isinstance(outcome, Reserved):
                return outcome
            async with self.progress:
                self.billed += 1
                self.progress.notify_all()
            await self._finish(store, id)

    async def _finish(self, store: RedisStore, id: str) -> None:
        while True:
            with contextlib.suppress(errors.StoreUnavailable):
                return await store.finish([finish(id, result(id, f"uid of {id}"), accounts=[self._account])])


@pytest.mark.parametrize("is_killed", [False, True])
async def test_after_a_loss_nothing_is_billed_until_usage_is_set(
    lasting: RedisServer, tmp_path: Path, time: ManualClock, is_killed: bool
) -> None:
    """By FLUSHALL, and by `kill -9` with a restart from an older snapshot."""
    stores = [await RedisStore.open(lasting.url, time, name, CACHE_BYTES) for name in ("one", "two")]
    load = Load(*stores, time=time)
    running = asyncio.create_task(load.run())
    await load.until(LIMIT // 4)
    shutil.copytree(tmp_path / "appendonlydir", tmp_path / "snapshot")
    await load.until(LIMIT // 2)
    if is_killed:
        lasting.kill()
        shutil.rmtree(tmp_path / "appendonlydir")
        shutil.copytree(tmp_path / "snapshot", tmp_path / "appendonlydir")
        lasting.start()
    else:
        lasting.empty()
    assert {type(end) for end in await running} == {errors.StoreUnavailable}
    before = load.billed
    assert before < LIMIT
    assert {type(end) for end in await load.run()} == {errors.StoreUnavailable}
    assert load.billed == before
    await stores[1].set_usage(NOVEMBER, load.billed)
    assert {type(end) for end in await load.run()} == {Refused}
    assert load.billed == LIMIT
    assert await counts(stores[0]) == (LIMIT, 0, 0)
    for store in stores:
        await store.aclose()


async def test_each_account_waits_for_its_own_usage(open_store: Opens, redis_server: RedisServer, time: Any) -> None:
    one_process, other = await open_store(), await open_store()
    others = Account("crm", "2023-11", 100)
    free_key = Account("key", "2023-11")
    await one_process.begin([begin("a", "k", time=time), begin("b", "l", time=time, accounts=[others])])
    await other.put_value("a", "", 1)
    for _ in range(5):
        await one_process.put_value("a", "", 1)  # the processes have seen different numbers
    redis_server.empty()
    for store in (other, one_process):
        with pytest.raises(errors.StoreUnavailable, match="usage --set"):
            raise await one(store, begin("c", "k", time=time))  # type: ignore[misc]
        assert await one(store, begin("c", Want("free", 9, 0), time=time)) == Reserved(None)
    await other.set_usage(NOVEMBER, 40)
    await one_process.finish([finish("a", result("k", "u"))])  # begun before: part of the 40
    assert await counts(other) == (40, 0, 0)
    with_key = begin("d", "m", time=time, accounts=[NOVEMBER, free_key])
    assert await one(one_process, with_key) == Reserved(None)
    limited_key = free_key._replace(limit=5)
    for accounts in ([others], [free_key], [NOVEMBER, limited_key]):
        outcome = await one(one_process, begin("e", "n", time=time, accounts=accounts))
        assert isinstance(outcome, errors.StoreUnavailable)
    await one_process.set_usage(others, 0)
    await other.set_usage(limited_key, 5)
    assert await one(other, begin("f", "n", time=time, accounts=[others])) == Reserved(None)
    assert await one(other, begin("g", "o", time=time, accounts=[limited_key])) == Refused(limited_key, 0, 1)
    await one_process.finish([finish("d", key="m")])
    assert await counts(other) == (41, 0, 0)


async def test_what_a_snapshot_has_reserved_is_no_more(store: Any, inside: Any, time: ManualClock) -> None:
    await store.begin([begin("a", Want("k", 3), time=time)])
    inside.hset("{v3bridge}:state", "counter", 0)  # as before the process saw more
    assert isinstance(await one(store, begin("b", "l", time=time)), errors.StoreUnavailable)
    await store.set_usage(NOVEMBER, 40)
    assert await one(store, begin("c", "k", time=time)) == Reserved(None)
    await store.finish([finish("a", key="k", used=3)])
    assert await counts(store) == (40, 0, 1)


async def test_a_process_that_starts_after_a_loss_knows_of_it(
    open_store: Opens, redis_server: RedisServer, time: Any
) -> None:
    store = await open_store()
    redis_server.empty()
    await store.put_value("a", "", 1)
    later = await open_store()
    assert isinstance(await one(later, begin("a", "k", time=time)), errors.StoreUnavailable)
    await later.set_usage(NOVEMBER, 1)
    assert await one(later, begin("b", "k", time=time)) == Reserved(None)
    redis_server.empty()
    assert isinstance(await one(later, begin("c", "l", time=time)), errors.StoreUnavailable)


class Cut:
    """A way to Redis that is cut as soon as Redis has run a script, before its reply comes back: `times` times, after
    `whole` scripts whose replies came back. The next scripts are `held` until those events, if any, and the replies of
    the next ones are `late` until those."""

    def __init__(self, redis: str) -> None:
        self._redis = redis
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
    way = Cut(redis_server.url.removeprefix("unix://"))
    server = await asyncio.start_unix_server(way.connect, tmp_path / "cut.sock")
    yield way
    server.close()


@pytest.mark.parametrize("whole", [0, 1], ids=["reads", "writes"])
@pytest.mark.parametrize("times", [1, 2])
async def test_what_is_sent_again_after_a_lost_reply_changes_nothing(
    cut: Cut, tmp_path: Path, time: ManualClock, times: int, whole: int
) -> None:
    store = await RedisStore.open(f"unix://{tmp_path}/cut.sock", time, "worker", CACHE_BYTES, now=time.now)

    async def sent() -> Any:
        return await store.begin([begin("a", Want("k", 3), time=time), begin("b", "l", time=time)])

    async def ended() -> None:
        await store.finish([finish("a", result("k", "u", "v", asked=3), used=2), finish("b", key="l", used=0)])

    for call, expected in ((sent, (0, 0, 4)), (ended, (2, 0, 0))):
        cut.times, cut.whole = times, whole  # the library sends once more by itself
        with contextlib.nullcontext() if times == 1 else pytest.raises(errors.StoreUnavailable):
            await call()
        assert cut.times == 0
        assert await call() in ([Reserved(None), Reserved(None)], None)
        assert await counts(store) == expected
    assert await one(store, begin("c", "k", time=time)) == Found(
        result("k", "u", "v", asked=3, fetched=NOW, part_ids=(None, None))
    )
    await store.aclose()


@pytest.mark.parametrize("is_known", [True, False])
async def test_nothing_is_reserved_with_what_was_read_before_a_loss(
    cut: Cut, redis_server: RedisServer, tmp_path: Path, time: ManualClock, is_known: bool
) -> None:
    store = await RedisStore.open(f"unix://{tmp_path}/cut.sock", time, "worker", CACHE_BYTES)
    cut.late.append(late := asyncio.Event())
    beginning = asyncio.create_task(one(store, begin("a", "k", time=time)))
    async with asyncio.timeout(30):
        while cut.late:
            await asyncio.sleep(0)
    redis_server.empty()
    if is_known:
        await store.put_value("a", "", 1)  # the process learns of the loss before it has the reply
    late.set()
    assert isinstance(await beginning, errors.StoreUnavailable)
    await store.aclose()


async def test_a_result_that_answers_another_key_too_is_found_though_it_came_after_its_look_up(
    store: Any, cut: Cut, tmp_path: Path, time: ManualClock
) -> None:
    await store.begin([begin("a", "general", time=time)])
    other = await RedisStore.open(f"unix://{tmp_path}/cut.sock", time, "other", CACHE_BYTES, now=time.now)
    cut.late.append(late := asyncio.Event())
    beginning = asyncio.create_task(one(other, begin("b", "exact", time=time)))
    async with asyncio.timeout(30):
        while cut.late:
            await asyncio.sleep(0)
    await store.finish([finish("a", result("general", "u"), result("exact", "u"))])
    late.set()
    assert isinstance(await beginning, Found)
    assert await counts(store) == (1, 0, 0)
    await other.aclose()


async def test_times_are_those_of_redis(redis_server: RedisServer, time: ManualClock) -> None:
    """A result is as old for a machine whose clock is behind as for the one that stored it."""
    behind = ManualClock(NOW - 7200)
    stores = [await RedisStore.open(redis_server.url, clock, "", CACHE_BYTES) for clock in (time, behind)]
    await stores[0].begin([begin("a", "k", time=time)])
    await stores[0].finish([finish("a", result("k", "u")._replace(fetched=NOW - 60))])
    for store, clock in zip(stores, (time, behind), strict=True):
        found = await one(store, begin("b", "k", time=clock, fresh_from=clock.now() - 100))
        assert isinstance(found, Found)
        assert found.result.fetched == pytest.approx(clock.now() - 60, abs=30)
        assert await one(store, begin(f"c {clock.now()}", "k", time=clock, fresh_from=clock.now() - 50)) != found
    assert await stores[0].put_value("ends", "soon", 0.05)
    async with asyncio.timeout(30):
        while (await stores[1].values(["ends"]))[0]:
            await asyncio.sleep(0)
    for store in stores:
        await store.aclose()


async def test_usage_is_booked_where_results_do_not_fit(store: Any, inside: Any, time: ManualClock) -> None:
    await store.begin([begin("a", "k", time=time), begin("b", "l", time=time)])
    inside.config_set("maxmemory", 1)
    try:
        assert await one(store, begin("c", "m", time=time)) == Reserved(None)
        await store.finish([finish("a", result("k", "u"))])
    finally:
        inside.config_set("maxmemory", 0)
    await store.finish([finish("b", result("l", "v"))])
    assert await counts(store) == (2, 0, 1)
    outcomes = [await one(store, begin("d", key, time=time)) for key in ("k", "l")]
    assert [type(outcome) for outcome in outcomes] == [Reserved, Found]


async def test_data_of_another_version_keep_usage_and_what_was_reserved(
    open_store: Opens, inside: Any, time: ManualClock
) -> None:
    store = await open_store()
    await store.begin([begin("a", "k", time=time), begin("b", "l", time=time)])
    await store.finish([finish("a", result("k", "u"))])
    inside.hset("{v3bridge}:state", "version", 0)
    inside.hset("{v3bridge}:reservation", '["b"]', b"of another version")
    later = await open_store()
    assert await counts(later) == (1, 1, 0)
    assert await later.begin([begin("c", key, time=time) for key in ("k", "l")]) == [Reserved(None)] * 2


async def test_what_was_reserved_is_counted_whenever_the_change_of_a_version_was_broken_off(
    store: Any, cut: Cut, inside: Any, tmp_path: Path, time: ManualClock
) -> None:
    await store.begin([begin("a", "k", time=time)])
    inside.hset("{v3bridge}:state", "version", 0)
    for times in (2, 1):  # the library sends once more by itself
        cut.times, cut.whole = times, 2 - times
        with pytest.raises(errors.StoreUnavailable) if times == 2 else contextlib.nullcontext():
            later = await RedisStore.open(f"unix://{tmp_path}/cut.sock", time, "later", CACHE_BYTES, now=time.now)
    assert await counts(later) == (0, 1, 0)
    await later.aclose()


async def test_usage_is_set_once_where_a_reply_is_lost(cut: Cut, tmp_path: Path, time: ManualClock) -> None:
    store = await RedisStore.open(f"unix://{tmp_path}/cut.sock", time, "worker", CACHE_BYTES, now=time.now)
    await store.set_usage(NOVEMBER, 60)
    cut.times = cut.whole = 1
    await store.set_usage(NOVEMBER, 40)
    assert (cut.times, await counts(store)) == (0, (40, 0, 0))
    await store.aclose()


async def test_all_keys_are_in_one_slot(store: Any, inside: Any, time: ManualClock) -> None:
    await store.begin([begin("a", "k", time=time)])
    await store.finish([finish("a", result("k", "u"))])
    await store.put_value("lease", "worker", 10.0)
    assert {key[: len("{v3bridge}:")] for key in inside.scan_iter()} == {"{v3bridge}:"}
    assert 0 < inside.ttl('{v3bridge}:value:["lease"]') <= 10


@pytest.mark.parametrize(
    "setting,value,advice", [("appendonly", "no", "appendonly yes"), ("maxmemory-policy", "volatile-lru", "noeviction")]
)
async def test_a_redis_that_would_lose_usage_is_refused(
    needs_program: Callable[[str], str], tmp_path: Path, time: ManualClock, setting: str, value: str, advice: str
) -> None:
    server = RedisServer(needs_program("redis-server"), tmp_path, {setting: value})
    server.start()
    with pytest.raises(errors.ConfigError, match=advice):
        await RedisStore.open(server.url, time, "worker", CACHE_BYTES)
    server.stop()


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
        with pytest.raises(errors.ConfigError, match="store") as caught:
            await opening.open_store(config.StoreUrl(url), time, worker="worker", cache_bytes=CACHE_BYTES)
        assert "passw0rd" not in repr((caught.value, caught.value.__cause__))


async def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, time: ManualClock) -> None:
    monkeypatch.setitem(sys.modules, "proxy.store.redis", None)
    with pytest.raises(errors.ConfigError, match=r"store: Redis needs another package; .*\[redis\]"):
        await opening.open_store(config.StoreUrl("redis://localhost/0"), time, worker="", cache_bytes=CACHE_BYTES)


async def test_begin_that_redis_has_after_its_finish_reserves_nothing(
    cut: Cut, tmp_path: Path, time: ManualClock
) -> None:
    store = await RedisStore.open(f"unix://{tmp_path}/cut.sock", time, "worker", CACHE_BYTES, now=time.now)
    late = asyncio.Event()
    cut.held = [None, late]  # one reads, the other writes what is reserved
    beginning = asyncio.create_task(store.begin([begin("a", Want("k", 3), time=time)]))
    async with asyncio.timeout(30):
        while cut.held:
            await asyncio.sleep(0)
    await store.finish([finish("a", key="k", used=0)])
    late.set()
    outcome = await beginning
    assert (outcome, await counts(store)) == ([Busy()], (0, 0, 0))
    await store.aclose()


async def test_a_limit_holds_over_processes_beside_begins_without_one(open_store: Opens, time: Any) -> None:
    """Two applications of a client id, of which one has no limit."""
    stores, limited, free = (
        [await open_store(), await open_store()],
        Account("erp", "2023-11", 3),
        Account("erp", "2023-11"),
    )

    def asked(name: str) -> list[Any]:
        first = begin(f"{name} 1", Want(f"{name} 1", 3), time=time, accounts=[limited])
        return [first, begin(f"{name} 2", Want(f"{name} 2", 5), time=time, accounts=[free])]

    outcomes = await asyncio.gather(*(store.begin(asked(name)) for store, name in zip(stores, "ab", strict=True)))
    assert sorted(type(each).__name__ for each, _ in outcomes) == ["Refused", "Reserved"]
    assert [each for _, each in outcomes] == [Reserved(None)] * 2
    assert await counts(stores[0]) == (0, 0, 13)
