"""What the pipeline does where something is refused, fails, is late or is gone."""

import asyncio
from typing import Any

import pytest
from service.gateway.world import ALL, HOUR, REFUSED, SECONDS, Upstream, World, client, uid, uids
from support.store_client import BrokenStore

from proxy import config, errors, model
from proxy.planning.queries import Query, matching, of_list, part

NUMBERS = [f"N{n}" for n in range(40)]
ERP = client()
QUERIES = [matching(0, 3, mpn=number) for number in NUMBERS]
ONE = QUERIES[:1]
FAULT = errors.UpstreamFault("failed")
CUT = errors.UpstreamUnreadable("cut", may_be_billed=True)


@pytest.fixture
def upstream() -> Upstream:
    return Upstream({number: [uid(n)] for n, number in enumerate(NUMBERS)} | {"LIST": [uid(50), uid(51)]})


async def test_queries_that_do_not_fit_a_limit_are_refused_one_by_one(world: World) -> None:
    process = world.process()
    answers = await world.resolve(process, client(limit=7), QUERIES[:3])
    assert [uids(answer) for answer in answers[:2]] == [[uid(0)], [uid(1)]]
    assert str(answers[2].error) == (
        "app/key has 1 of 7 parts left (2026-12), and this request may cost 3; 6 are reserved by requests under "
        "way, so try again in a few seconds"
    )
    assert [answer.error for answer in await world.resolve(process, client(limit=7), QUERIES[:3])] == [None] * 3
    (refused,) = await world.resolve(process, client(limit=5), QUERIES[5:6])
    assert str(refused.error) == (
        "app/key has 2 of 5 parts left (2026-12), and this request may cost 3; it is reset on 2027-01-01"
    )
    assert [each.error and each.error.retry_after for each in (answers[2], refused)] == [5, 22 * 86_400]


async def test_a_refusal_by_one_account_is_none_for_others(world: World) -> None:
    process = world.process()
    poor, rich = client("poor", 0), client("rich", 10)
    (refused,), (served,) = await asyncio.gather(world.resolve(process, poor, ONE), world.resolve(process, rich, ONE))
    assert isinstance(refused.error, errors.QuotaExhausted)
    assert (uids(served), served.parts) == ([uid(0)], 1)
    assert uids((await world.resolve(process, poor, ONE))[0]) == [uid(0)]  # it is free now


async def test_a_client_that_leaves_or_has_no_time_loses_nothing(world: World) -> None:
    world.upstream.seconds = 13.0
    process = world.process()
    leaving = asyncio.create_task(world.resolve(process, ERP, ONE))
    await asyncio.sleep(1.0)
    leaving.cancel()
    (hurried,), (patient,) = await asyncio.gather(
        world.resolve(process, ERP, ONE, seconds=2.0), world.resolve(process, ERP, ONE)
    )
    assert isinstance(hurried.error, errors.DeadlineExceeded)
    assert uids(patient) == [uid(0)]
    assert world.upstream.billed["erp"] == await world.counted("erp") == 1


@pytest.mark.parametrize("failure, billed, counted", [(FAULT, False, 0), (CUT, True, 3), (CUT, False, 3)])
async def test_stale_results_are_served_while_the_upstream_fails(
    world: World, failure: errors.BridgeError, billed: bool, counted: int
) -> None:
    process = world.process()
    await world.resolve(process, ERP, ONE)
    await asyncio.sleep(23.7 * HOUR)
    world.upstream.failures = [(failure, billed), (failure, False), (failure, False)]
    (stale,) = await world.resolve(process, ERP, ONE)
    assert (stale.source, uids(stale)) == ("stale", [uid(0)])
    (failed,) = await world.resolve(process, ERP, QUERIES[1:2])
    assert failed.error is failure
    assert await world.counted("erp") == 1 + 2 * counted
    await asyncio.sleep(0.5 * HOUR)
    assert (await world.resolve(process, ERP, ONE))[0].error is failure


async def test_an_exhausted_quota_stops_all_processes_and_serves_nothing_stale(world: World) -> None:
    process, other = world.process(), world.process()
    await world.resolve(process, ERP, ONE)
    exhausted = errors.QuotaExhausted("You have exceeded your part limit of 1")
    world.upstream.failures = [(exhausted, False)]
    await world.resolve(process, ERP, QUERIES[1:2])
    await other.refresh([ERP])
    for each in (process, other):
        known, new = await world.resolve(each, ERP, QUERIES[:2])
        assert uids(known) == [uid(0)]
        assert isinstance(new.error, errors.QuotaExhausted)
        assert new.error.retry_after is not None
    assert (len(world.upstream.operations), await world.counted("erp")) == (2, 1)
    await asyncio.sleep(23.7 * HOUR)
    assert isinstance((await world.resolve(process, ERP, ONE))[0].error, errors.QuotaExhausted)


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("bills", [True, False])
@pytest.mark.parametrize("features", [None, ALL])
async def test_a_feature_that_the_tier_lacks_is_left_out(
    world: World, nullable: bool, bills: bool, features: tuple[str, ...] | None
) -> None:
    world.upstream.nullable, world.upstream.bills_refused = nullable, bills
    process, erp = world.process(), client(features=features)
    world.upstream.lacking = frozenset({"TECH_SPECS"})
    answers = await world.resolve(process, erp, QUERIES[:5])
    assert [uids(answer) for answer in answers] == [[uid(n)] for n in range(5)]
    assert {answer.features for answer in answers} == {frozenset(ALL) - {"TECH_SPECS"}}
    sizes = [len(each["variables"]["queries"]) for each in world.upstream.operations]
    first = [1] if features is None else [5]
    assert sizes == first + ([] if nullable else first) + ([4] if features is None else [])
    lost = 0 if nullable else first[0]
    assert world.upstream.billed["erp"] == 5 + lost * bills
    assert await world.counted("erp") == 5 + 3 * lost
    for each in (process, world.process()):  # the store tells others, and keeps the parts
        await each.refresh([erp])
        assert {answer.source for answer in await world.resolve(each, erp, QUERIES[:5])} == {"hit"}


async def test_features_that_no_error_names_are_left_out_for_an_hour(world: World) -> None:
    world.upstream.nullable = world.upstream.has_path = False
    processes, paged = [world.process(), world.process()], of_list("supSearch", 0, 1, {"q": "N1"})
    for process in processes:  # both have seen all features
        await world.resolve(process, ERP, QUERIES[:2])
    world.upstream.lacking = frozenset({"TECH_SPECS"})
    for parts, process in ((1, processes[0]), (0, processes[1])):
        (answer,) = await world.resolve(process, ERP, [paged])
        assert (answer.features, answer.parts) == (frozenset(), parts)
        await processes[1].refresh([ERP])
    assert [" specs " in each["query"] for each in world.upstream.operations] == [True, True, False]
    await asyncio.sleep(HOUR)
    (answer,) = await world.resolve(processes[0], ERP, [paged._replace(criteria={"q": "N2"}, key="N2")])
    assert answer.features == frozenset()  # they were tried again
    await asyncio.sleep(HOUR)
    world.upstream.lacking = frozenset()
    for process in processes:
        (answer,) = await world.resolve(process, ERP, [paged._replace(criteria={"q": "N3"}, key="N3")])
        await processes[1].refresh([ERP])
        assert answer.features == frozenset(ALL)
    assert world.upstream.billed["erp"] == await world.counted("erp") == 5


async def test_an_operation_that_is_refused_with_and_without_features_fails(world: World) -> None:
    process = world.process()
    refusal = errors.QueryRefused("no such filter")
    for sends in (2, 1):  # features are not guessed again at once
        world.upstream.failures = [(refusal, False)] * sends
        assert (await world.resolve(process, ERP, ONE))[0].error is refusal
        assert not world.upstream.failures
    assert await world.counted("erp") == 0
    executed = errors.QueryRefused("no", reported=(model.GraphQLError("no", ["supMultiMatch"]),))
    world.upstream.failures = [(executed, False)]
    (answer,) = await world.resolve(process, client("shop", 3, client_id="shop"), ONE)
    assert (answer.error, answer.parts) == (executed, 3)  # for a guess there is no room
    assert (await world.resolve(process, ERP, ONE))[0].features == frozenset(ALL)


async def test_a_query_that_is_refused_fails_none_of_other_callers(world: World) -> None:
    process, refused = world.process(), matching(0, 1, mpn=REFUSED)
    callers = [world.resolve(process, ERP, [query]) for query in (*ONE, refused)]
    (first,), (second,) = await asyncio.gather(*callers)
    assert (uids(first), first.features) == ([uid(0)], frozenset(ALL))
    assert isinstance(second.error, errors.QueryRefused)
    assert await world.counted("erp") == 1


@pytest.mark.parametrize("bills", [True, False])
async def test_batches_that_are_too_complex_are_halved(world: World, bills: bool) -> None:
    world.upstream.complex_from, world.upstream.bills_refused = 6, bills
    process, queries = world.process(), [part(uid(n)) for n in range(20)]
    answers = await world.resolve(process, ERP, queries)
    assert [uids(answer) for answer in answers] == [[uid(n)] for n in range(20)]
    sizes = [len(each["variables"]["ids"]) for each in world.upstream.operations]
    assert sizes == [20, 10, 10, *[5] * 4]
    assert await world.counted("erp") == 20 + 20 + 20
    assert world.upstream.billed["erp"] == (60 if bills else 20)


async def test_an_operation_asks_for_no_more_parts_than_the_upstream_takes(world: World) -> None:
    await world.resolve(world.process(), ERP, QUERIES)
    limits = [[query["limit"] for query in each["variables"]["queries"]] for each in world.upstream.operations]
    assert limits == [[3] * 33, [3] * 7]


async def test_markets_and_features_have_operations_of_their_own(world: World) -> None:
    process, clients = world.process(), [ERP, client(country="DE"), client(features=["TECH_SPECS"])]
    callers = [world.resolve(process, each, [query]) for each, query in zip(clients, QUERIES, strict=False)]
    answers = [answer for (answer,) in await asyncio.gather(*callers)]
    assert [answer.features for answer in answers] == [frozenset(ALL), frozenset(ALL), {"TECH_SPECS"}]
    assert [each["variables"]["country"] for each in world.upstream.operations] == ["US", "DE", "US"]


async def test_what_fails_in_an_unexpected_way_may_have_been_billed(world: World) -> None:
    async def send(*_: Any) -> Any:
        raise RuntimeError("a mistake")

    (answer,) = await world.resolve(world.process(send=send), ERP, ONE)
    assert type(answer.error) is errors.ServerError
    assert await world.counted("erp") == 3


async def test_a_query_that_is_too_complex_alone_fails(world: World) -> None:
    world.upstream.complex_from = 1
    (answer,) = await world.resolve(world.process(), ERP, ONE)
    assert isinstance(answer.error, errors.OversizedOperation)
    assert len(world.upstream.operations) == 1


async def test_a_store_that_takes_no_finish_delays_no_response_and_stops_what_costs(world: World) -> None:
    store = BrokenStore(world.store)
    state = world.state(store)
    process = world.process(state=state)
    await world.resolve(process, ERP, QUERIES[1:2])
    store.broken = {"finish"}
    assert uids((await world.resolve(process, ERP, ONE))[0]) == [uid(0)]
    assert state.unfinished
    assert await world.counted("erp") == 1 + 3  # the reservation counts in full
    repeated, stored, new = await world.resolve(process, ERP, [*ONE, *QUERIES[1:3]])
    assert (uids(repeated), uids(stored)) == ([uid(0)], [uid(1)])
    assert isinstance(new.error, errors.StoreUnavailable)
    store.broken = set()
    await process.aclose()
    assert not state.unfinished
    assert await world.counted("erp") == world.upstream.billed["erp"] == 2


async def test_a_finish_whose_confirmation_was_lost_is_booked_once(world: World) -> None:
    store = BrokenStore(world.store)
    process = world.process(store)
    store.broken, store.loses = {"finish"}, True
    await world.resolve(process, ERP, ONE)
    await asyncio.sleep(HOUR)
    await world.store.sweep()
    store.broken = set()
    await process.aclose()
    assert await world.counted("erp") == 1


@pytest.mark.parametrize("loses", [True, False])
async def test_a_begin_without_confirmation_is_ended(world: World, loses: bool) -> None:
    store = BrokenStore(world.store)
    process = world.process(store)
    store.broken, store.loses = {"begin"}, loses
    assert isinstance((await world.resolve(process, ERP, ONE))[0].error, errors.StoreUnavailable)
    assert await world.counted("erp") == len(world.upstream.operations) == 0


async def test_a_second_begin_without_confirmation_costs_no_more_than_the_first(world: World) -> None:
    store = BrokenStore(world.store)
    world.upstream.seconds, world.upstream.failures = 1.0, [(errors.OversizedOperation("too large"), False)]
    asked = asyncio.create_task(world.resolve(world.process(store), ERP, QUERIES[:2]))
    await asyncio.sleep(0.5)
    store.broken = {"begin"}
    assert {type(answer.error) for answer in await asked} == {errors.StoreUnavailable}
    assert await world.counted("erp") == 0


async def test_a_key_that_another_process_did_not_fetch_is_fetched_at_once(world: World) -> None:
    world.upstream.seconds, world.upstream.failures = 10.0, [(FAULT, False)]
    failed = asyncio.create_task(world.resolve(world.process(), ERP, ONE))
    await asyncio.sleep(1.0)
    answers = await world.resolve(world.process(), ERP, QUERIES[:2])
    assert [uids(answer) for answer in answers] == [[uid(0)], [uid(1)]]
    assert (await failed)[0].error is FAULT


async def test_what_has_waited_too_long_for_a_connection_is_not_sent(world: World) -> None:
    world.upstream.seconds = SECONDS - 1
    process = world.process(connections=1)
    callers = [world.resolve(process, client(country=country), ONE) for country in ("US", "DE", "FR")]
    answers = [answer for (answer,) in await asyncio.gather(*callers)]
    assert [type(answer.error) for answer in answers[1:]] == [errors.DeadlineExceeded] * 2
    await process.aclose()
    assert len(world.upstream.operations) == 2  # of which the second was late
    assert world.upstream.billed["erp"] <= await world.counted("erp") == 1 + 3


async def test_an_operation_ends_with_the_first_of_its_reservations(world: World) -> None:
    limits, world.upstream.seconds = list[float](), 10.0

    async def send(*arguments: Any) -> Any:
        limits.append(arguments[-1])
        return await world.upstream.send(*arguments)

    async def late(start: float, query: Query) -> None:
        await asyncio.sleep(start)
        await world.resolve(process, ERP, [query])

    process = world.process(connections=1, send=send)
    await asyncio.gather(*(late(start, query) for start, query in zip((0.0, 1.0, 5.0), QUERIES, strict=False)))
    assert limits == [SECONDS, 1.0 + SECONDS - 10.0]


async def test_what_has_waited_until_the_month_ended_is_begun_anew(world: World) -> None:
    await asyncio.sleep(22 * 24 * HOUR - 5)
    world.upstream.seconds = 10.0
    process = world.process(connections=1)
    await asyncio.gather(*(world.resolve(process, client(country=country), ONE) for country in ("US", "DE")))
    usage = {row.period: sum(row[2:]) for row in await world.store.usage() if row.account == config.hex_digest("key")}
    # What was sent before the month ended may have been billed in both.
    assert {period: usage[period] for period in ("2026-12", "2027-01")} == {"2026-12": 1, "2027-01": 2}


async def test_a_part_that_is_null_is_counted_once(world: World) -> None:
    world.upstream.null = frozenset({uid(0)})
    answers = await world.resolve(world.process(), ERP, QUERIES[:2])
    assert [(answer.is_partial, answer.parts) for answer in answers] == [(True, 1), (False, 1)]
    assert await world.counted("erp") == 2


async def test_a_part_that_several_errors_have_removed_fails_alone(world: World) -> None:
    world.upstream.null, world.upstream.lacking = frozenset({uid(0)}), frozenset({"TECH_SPECS"})
    lost, found = await world.resolve(world.process(), ERP, [part(uid(0)), part(uid(1))])
    assert isinstance(lost.error, errors.QueryRefused)
    assert uids(found) == [uid(1)]
    assert await world.counted("erp") == 2


async def test_a_query_with_errors_beside_its_data_is_shown_and_not_stored(world: World) -> None:
    process = world.process()
    world.upstream.faulty = frozenset({uid(0)})
    for sources in (["miss", "miss"], ["miss", "hit"]):
        answers = await world.resolve(process, ERP, QUERIES[:2])
        assert [uids(answer) for answer in answers] == [[uid(0)], [uid(1)]]
        assert [answer.source for answer in answers] == sources
        assert [answer.is_partial for answer in answers] == [True, False]


async def test_one_operation_a_day_tries_what_the_tier_lacked(world: World) -> None:
    process = world.process()
    world.upstream.lacking = frozenset({"TECH_SPECS"})
    await world.resolve(process, ERP, ONE)
    await asyncio.sleep(22 * HOUR)
    paged = of_list("supSearch", 0, 1, {"q": "LIST"})
    await world.resolve(process, ERP, [paged])
    await asyncio.sleep(2.1 * HOUR)
    await asyncio.gather(*(world.resolve(process, client(country=market), ONE) for market in ("US", "DE", "FR")))
    selected = [" specs " in each["query"] for each in world.upstream.operations]
    assert selected == [True, False, True, False, False]
    world.upstream.lacking = frozenset()
    await asyncio.sleep(24.1 * HOUR)
    await world.resolve(process, ERP, [paged])
    (answer,) = await world.resolve(process, ERP, [paged._replace(end=2)])
    assert (uids(answer), answer.features) == ([uid(50), uid(51)], frozenset(ALL))


async def test_the_rest_of_a_list_has_no_more_features_than_its_beginning(world: World) -> None:
    process, paged = world.process(), of_list("supSearch", 0, 1, {"q": "LIST"})
    world.upstream.lacking = frozenset({"TECH_SPECS"})
    await world.resolve(process, ERP, ONE)
    await asyncio.sleep(2 * HOUR)
    await world.resolve(process, ERP, [paged])
    world.upstream.lacking = frozenset()
    await asyncio.sleep(22.1 * HOUR)  # the features are tried again
    (answer,) = await world.resolve(process, ERP, [paged._replace(end=2)])
    assert answer.features == frozenset(ALL) - {"TECH_SPECS"}


async def test_the_first_operations_of_unknown_features_are_sent_one_at_a_time(world: World) -> None:
    process, erp = world.process(), client(features=None)
    world.upstream.failures = [(FAULT, False)]
    await asyncio.gather(*(world.resolve(process, erp, QUERIES[place : place + 2]) for place in (0, 2, 4)))
    sizes = [len(each["variables"]["queries"]) for each in world.upstream.operations]
    assert sizes[:2] == [1, 1]
    assert sum(sizes) == 6
    assert len(sizes) < 6


async def test_a_refused_query_is_not_served_stale(world: World) -> None:
    process = world.process()
    await world.resolve(process, ERP, ONE)
    await asyncio.sleep(23.7 * HOUR)
    refusal = errors.QueryRefused("no such maker")
    world.upstream.failures = [(refusal, False), (refusal, False)]
    assert (await world.resolve(process, ERP, ONE))[0].error is refusal


async def test_an_answer_says_what_a_failed_operation_may_have_cost(world: World) -> None:
    process = world.process()
    for failure, parts in ((CUT, 3), (FAULT, 0)):
        world.upstream.failures = [(failure, False)]
        callers = [world.resolve(process, ERP, QUERIES[:2]) for _ in range(2)]
        answers = await asyncio.gather(*callers)
        assert sorted([answer.parts for answer in each] for each in answers) == [[0, 0], [parts, parts]]
    assert await world.counted("erp") == 6


async def test_what_is_stored_is_quoted_and_fetched_anew_where_that_is_asked_for(world: World) -> None:
    process = world.process()
    await world.resolve(process, ERP, ONE)
    quoted = await process.quote(ERP, QUERIES[:2])
    assert [each and uids(each) for each in quoted] == [[uid(0)], None]
    until = world.clock.monotonic() + SECONDS
    assert [each.parts for each in await process.resolve(ERP, ONE, until, anew=True)] == [1]
    world.upstream.failures = [(FAULT, False)]
    (answer,) = await process.resolve(ERP, ONE, until, anew=True)
    assert (answer.result, answer.error) == (None, FAULT)
    assert world.upstream.billed["erp"] == await world.counted("erp") == 2


async def test_a_number_of_hits_that_no_store_takes_costs_no_answer(world: World) -> None:
    class Boundless(Upstream):
        def _page(self, query: dict[str, Any]) -> tuple[list[str], int]:
            return super()._page(query)[0], 10**19

    # REST runs(Boundless({number: [uid(n)] for n, number in enumerate(NUMBERS)}), main)
    answers = await world.resolve(world.process(), ERP, QUERIES[:2])
    assert [uids(answer) for answer in answers] == [[uid(0)], [uid(1)]]
    assert uids((await world.resolve(world.process(), ERP, ONE))[0]) == [uid(0)]
    assert world.upstream.billed["erp"] == await world.counted("erp") == 2


async def test_quotas_that_are_exhausted_at_the_same_moment_are_all_kept(world: World) -> None:
    class Slow(BrokenStore):
        async def put_value(self, *args: Any) -> Any:
            await asyncio.sleep(0.5)
            return await self.store.put_value(*args)

    process, clients = world.process(Slow(world.store)), [client(client_id="erp"), client(client_id="shop")]
    world.upstream.failures = [(errors.QuotaExhausted("You have exceeded your part limit of 1"), False)] * 2
    answers = await asyncio.gather(*(world.resolve(process, each, ONE) for each in clients))
    assert [type(answer.error) for (answer,) in answers] == [errors.QuotaExhausted] * 2
    other = world.process()
    await other.refresh(clients)
    for each in clients:
        error: Any = (await world.resolve(other, each, ONE))[0].error
        assert (type(error), error.retry_after) == (errors.QuotaExhausted, 22 * 86_400)
    assert len(world.upstream.operations) == 2


@pytest.mark.parametrize("connections", [1, 9])
async def test_what_comes_while_an_operation_is_under_way_is_one_batch(world: World, connections: int) -> None:
    process, callers = world.process(connections=connections), list[asyncio.Task[object]]()
    for seconds, query in zip((0.02, 0, 0), QUERIES, strict=False):
        callers.append(asyncio.create_task(world.resolve(process, ERP, [query])))
        await asyncio.sleep(seconds)
    await asyncio.gather(*callers)
    assert len(world.upstream.operations) == 2


async def test_usage_is_exact_for_what_the_process_booked_and_read_for_what_others_did(world: World) -> None:
    erp, other = client(limit=10), client("other", limit=5)
    own, another = world.state(), world.state()
    for state, caller, queries in ((own, erp, ONE), (another, other, QUERIES[1:2])):
        await world.resolve(world.process(state=state), caller, queries)
        assert state.quotas.status(caller).used == 1
    assert own.quotas.status(other).used == 0
    await own.quotas.refresh([*erp.charged, *other.charged])
    assert own.quotas.status(other).used == 1
    assert own.quotas.status(client()) == (2, None, 22 * 86_400)
    world.upstream.failures = [(CUT, True)]
    await world.resolve(world.process(state=own), erp, QUERIES[2:3])
    assert own.quotas.status(erp).used == 1 + 3  # uncertain
