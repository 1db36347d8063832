"""One question is paid for once in a day, per application and market."""

import asyncio

import pytest
from service.gateway.world import HOUR, Upstream, World, client, uid, uids

from proxy import errors
from proxy.planning.queries import Query, matching, of_list, part

NUMBERS = [f"N{n}" for n in range(60)]
ERP = client()
BY_NUMBER = [matching(0, 3, mpn=number) for number in NUMBERS]


@pytest.fixture
def upstream() -> Upstream:
    return Upstream({number: [uid(n)] for n, number in enumerate(NUMBERS)} | {"LIST": [uid(n) for n in range(40)]})


async def test_sixty_parts_cost_sixty_however_they_are_asked_for(world: World) -> None:
    process = world.process()
    forms = [
        BY_NUMBER,
        [matching(0, 1, mpn=f" {number.lower()} ") for number in NUMBERS],
        [matching(0, 20, mpn=number, manufacturer="Maker") for number in NUMBERS],
        [part(uid(n)) for n in range(60)],
        [part(f"id of {uid(n)}") for n in range(60)],
    ]
    for wait in (0.0, 360.0, 22 * HOUR):
        await asyncio.sleep(wait)
        for form in forms:
            answers = await world.resolve(process, ERP, form)
            assert [uids(answer) for answer in answers] == [[uid(n)] for n in range(60)]
            process = world.process()  # a restart
    assert world.upstream.billed["erp"] == 60
    await asyncio.sleep(3 * HOUR)
    await world.resolve(process, ERP, BY_NUMBER)
    assert world.upstream.billed["erp"] == await world.counted("erp") == 120


async def test_the_number_with_its_maker_first_is_paid_twice(world: World) -> None:
    process = world.process()
    await world.resolve(process, ERP, [matching(0, 3, mpn=number, manufacturer="Maker") for number in NUMBERS])
    await world.resolve(process, ERP, BY_NUMBER)
    assert world.upstream.billed["erp"] == 120


async def test_a_number_and_the_same_with_its_maker_in_one_request_are_paid_once(world: World) -> None:
    forms = [matching(0, 3, mpn="N1", manufacturer="Maker"), matching(0, 3, mpn="n1"), matching(0, 3, mpn="N1")]
    answers = await world.resolve(world.process(), ERP, forms)
    assert [uids(answer) for answer in answers] == [[uid(1)]] * 3
    assert world.upstream.billed["erp"] == 1


async def test_callers_at_the_same_time_share_one_operation(world: World) -> None:
    process = world.process()
    same = [world.resolve(process, ERP, BY_NUMBER[:1]) for _ in range(6)]
    others = [world.resolve(process, ERP, [query]) for query in BY_NUMBER[1:20]]
    answers = await asyncio.gather(*same, *others)
    assert [each.source for (each,) in answers] == ["miss"] + 5 * ["shared"] + 19 * ["miss"]
    assert len(world.upstream.operations) == 1
    assert world.upstream.billed["erp"] == sum(each.parts for (each,) in answers) == 20


async def test_a_slow_upstream_is_asked_once_by_all_processes(world: World) -> None:
    world.upstream.seconds = 13.0
    processes = [world.process(), world.process()] * 3
    callers = [world.resolve(process, ERP, BY_NUMBER[:1]) for process in processes]
    answers = await asyncio.gather(*callers)
    assert [uids(each) for (each,) in answers] == [[uid(0)]] * 6
    assert world.upstream.billed["erp"] == 1


async def test_processes_that_start_at_the_same_time_learn_of_one_operation_what_the_tier_lacks(world: World) -> None:
    world.upstream.lacking = frozenset({"TECH_SPECS"})
    erp = client(features=None)
    callers = [world.resolve(process, erp, BY_NUMBER[:1]) for process in (world.process(), world.process())]
    answers = await asyncio.gather(*callers)
    assert [uids(each) for (each,) in answers] == [[uid(0)]] * 2
    assert world.upstream.billed["erp"] == 1


def pages(*pairs: tuple[int, int]) -> list[Query]:
    return [of_list("supSearch", start, end, {"q": "LIST"}) for start, end in pairs]


async def test_a_page_costs_what_is_missing_of_its_list(world: World) -> None:
    world.upstream.lists["LIST"] = [uid(n) for n in range(1_000)]
    process = world.process()
    for query, parts in zip(
        pages((0, 10), (0, 5), (10, 20), (0, 20), (500, 510), (505, 515)), (10, 0, 10, 0, 10, 10), strict=True
    ):
        (answer,) = await world.resolve(process, ERP, [query])
        shown = slice(query.start - answer.first, query.end - answer.first)
        assert uids(answer)[shown] == [uid(n) for n in range(query.start, query.end)]
        assert answer.parts == parts
    assert world.upstream.billed["erp"] == 40


async def test_a_page_is_paid_once_whatever_is_fetched_of_its_list_later(world: World) -> None:
    process = world.process()
    for (query,), parts in zip(
        map(pages, ((10, 13), (0, 10), (10, 13), (10, 20), (10, 20), (0, 20), (15, 20))),
        (3, 10, 0, 7, 0, 10, 0),
        strict=True,
    ):
        (answer,) = await world.resolve(process, ERP, [query])
        assert answer.parts == parts
        assert uids(answer)[query.start - answer.first :] == [uid(n) for n in range(query.start, query.end)]


async def test_a_list_that_grew_or_moved_is_fetched_anew(world: World) -> None:
    process, listed = world.process(), world.upstream.lists["LIST"]
    await world.resolve(process, ERP, pages((0, 10)))
    listed.insert(5, uid(99))
    (answer,) = await world.resolve(process, ERP, pages((10, 20)))
    assert uids(answer) == listed[:20]
    listed.insert(0, listed.pop())
    (answer,) = await world.resolve(process, ERP, pages((20, 30)))
    assert uids(answer) == listed[:30]
    assert world.upstream.billed["erp"] == await world.counted("erp") == 10 + (10 + 20) + (10 + 30)


async def test_processes_fetch_a_list_that_grew_anew_once(world: World) -> None:
    processes, listed = [world.process(), world.process()], world.upstream.lists["LIST"]
    await world.resolve(processes[0], ERP, pages((0, 10)))
    listed.insert(5, uid(99))
    callers = [world.resolve(process, ERP, pages((10, 20))) for process in processes]
    for (answer,) in await asyncio.gather(*callers):
        assert uids(answer) == listed[:20]
    assert world.upstream.billed["erp"] == await world.counted("erp") == 10 + (10 + 20)


async def test_what_processes_fetch_anew_at_the_same_time_is_paid_once(world: World) -> None:
    processes = [world.process(), world.process()]
    await world.resolve(processes[0], ERP, BY_NUMBER[:1])
    until = world.clock.monotonic() + 10.0
    answers = await asyncio.gather(*(each.resolve(ERP, BY_NUMBER[:1], until, anew=True) for each in processes))
    assert [answer.parts for (answer,) in answers] == [1, 0]
    assert world.upstream.billed["erp"] == await world.counted("erp") == 1 + 1


async def test_a_list_that_lost_an_element_behind_its_beginning_is_fetched_anew(world: World) -> None:
    process, listed = world.process(), world.upstream.lists["LIST"]
    await world.resolve(process, ERP, pages((0, 10)))
    listed.pop()
    (answer,) = await world.resolve(process, ERP, pages((10, 20)))
    assert answer.result is not None
    assert (uids(answer), answer.result.hits) == (listed[:20], 39)
    assert world.upstream.billed["erp"] == 10 + (10 + 20)


async def test_a_longer_beginning_waits_for_a_shorter_one_and_fetches_the_rest(world: World) -> None:
    process = world.process()
    callers = [world.resolve(process, ERP, [query]) for query in pages((0, 10), (0, 30), (0, 20))]
    answers = [answer for (answer,) in await asyncio.gather(*callers)]
    assert [len(uids(answer)) for answer in answers] == [10, 30, 30]
    assert world.upstream.billed["erp"] == 30


async def test_a_stored_beginning_does_not_wait_for_the_rest_of_its_list(world: World) -> None:
    process = world.process()
    await world.resolve(process, ERP, pages((0, 10)))
    world.upstream.seconds, before = 5.0, world.clock.monotonic()
    longer = asyncio.create_task(world.resolve(process, ERP, pages((0, 30))))
    await asyncio.sleep(1.0)
    (answer,) = await world.resolve(process, ERP, pages((0, 8)))
    assert (answer.source, uids(answer)) == ("hit", world.upstream.lists["LIST"][:10])
    assert world.clock.monotonic() - before == 1.0
    assert len(uids((await longer)[0])) == 30
    assert world.upstream.billed["erp"] == 30


async def test_a_stored_beginning_is_served_though_the_rest_of_its_list_fails(world: World) -> None:
    process = world.process()
    await world.resolve(process, ERP, pages((0, 10)))
    world.upstream.failures = [(errors.UpstreamFault("HTTP 500", may_be_billed=False), False)]
    callers = [world.resolve(process, ERP, [query]) for query in pages((0, 30), (0, 5))]
    (failed,), (served,) = await asyncio.gather(*callers)
    assert isinstance(failed.error, errors.UpstreamFault)
    assert (served.source, len(uids(served))) == ("hit", 10)


@pytest.mark.parametrize("stored", [0, 5])
async def test_a_shorter_list_is_served_though_a_longer_one_is_refused(world: World, stored: int) -> None:
    process, caller = world.process(), client(limit=5)
    await world.resolve(process, caller, pages((0, stored)))
    longer, shorter = await world.resolve(process, caller, pages((0, 30), (0, 5)))
    assert isinstance(longer.error, errors.QuotaExhausted)
    assert len(uids(shorter)) == 5
    assert world.upstream.billed["erp"] == 5


async def test_a_number_is_not_twice_in_an_operation(world: World) -> None:
    process = world.process()
    forms = [matching(0, 1, mpn="N1"), matching(0, 1, mpn_or_sku="N1")]
    await asyncio.gather(*(world.resolve(process, ERP, [form]) for form in forms))
    await world.resolve(process, client(country="DE"), forms)
    assert [len(each["variables"]["queries"]) for each in world.upstream.operations] == [1, 1, 1, 1]
