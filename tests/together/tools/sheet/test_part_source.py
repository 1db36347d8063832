"""Tests of the source of parts for spreadsheets: what it returns, and what that costs."""

from decimal import Decimal
from pathlib import Path

from together.environment import single_application
from together.tools.sheet.sheet_source import (
    DIODE,
    FLIP_FLOP,
    NUMBERS,
    UNKNOWN,
    Serve,
    billed,
    booked,
    fetched,
    numbers,
    opened,
)

import nexar_sandbox
from proxy.kit import clock
from proxy.tools.sheet.parts import CostEstimate, PartQuery


async def test_part_has_what_columns_and_functions_show(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    async with opened(sandbox, file, time) as source:
        result = (await fetched(source, FLIP_FLOP))[FLIP_FLOP]
    [part] = result.parts
    assert (part.mpn, part.manufacturer, part.lifecycle, part.package) == (
        "SN74S74N",
        "Texas Instruments",
        "Production",
        "PDIP",
    )
    assert part.url is not None
    assert part.url.startswith("https://octopart.com/")
    assert part.datasheet_url is not None
    assert part.short_description
    assert (result.error, result.fetched) == (None, time.now())
    digi_key = next(offer for offer in part.offers if offer.seller == "Digi-Key")
    assert (digi_key.seller_id, digi_key.authorized, digi_key.lead_days is not None) == ("459", True, True)
    assert any(offer.prices for offer in part.offers)
    assert all(offer.updated is not None and offer.url for offer in part.offers)


async def test_hits_count_all_matches_and_a_manufacturer_filters(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    ambiguous = PartQuery(FLIP_FLOP.mpn)
    async with opened(sandbox, file, time) as source:
        results = await fetched(source, ambiguous, FLIP_FLOP, FLIP_FLOP._replace(manufacturer="Vishay"))
        assert source.parts_spent == billed(sandbox) == 2
    (first, filtered, other) = results.values()
    assert first.hits > filtered.hits >= 1
    assert [part.manufacturer for part in filtered.parts] == ["Texas Instruments"]
    assert (other.parts, other.hits, other.error) == ((), 0, None)


async def test_sku_finds_its_part(sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock) -> None:
    async with opened(sandbox, file, time) as source:
        [part] = (await fetched(source, FLIP_FLOP))[FLIP_FLOP].parts
        sku = next(offer.sku for offer in part.offers if offer.seller == "Digi-Key")
        by_sku = PartQuery("", sku=sku or "")
        [found] = (await fetched(source, by_sku))[by_sku].parts
    assert (found.mpn, found.manufacturer) == (part.mpn, part.manufacturer)


async def test_prices_are_exact_and_converted_to_the_currency_of_the_query(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    queries = [FLIP_FLOP._replace(currency=code) for code in ("EUR", "USD")]
    async with opened(sandbox, file, time) as source:
        results = await fetched(source, *queries)
    for query, result in results.items():
        prices = [price for part in result.parts for offer in part.offers for price in offer.prices]
        assert {price.currency for price in prices} >= {"USD", "EUR"}
        for price in prices:
            rate = nexar_sandbox.exchange_rate(price.currency, query.currency)
            exact = None if rate is None else Decimal(repr(float(price.price) * rate))
            assert price.converted == exact
            assert price.price == Decimal(repr(float(price.price)))


async def test_prices_of_a_currency_do_not_reach_queries_of_another_at_the_same_time(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    async with opened(sandbox, file, time) as source:
        results = await fetched(source, *(DIODE._replace(currency=code) for code in ("USD", "EUR", "JPY")))
        assert source.parts_spent == billed(sandbox) == 3
    sent = [variables["currency"] for _, variables in sandbox.request_counts.documents]
    assert sorted(sent) == ["EUR", "JPY", "USD"]
    assert len({result.parts for result in results.values()}) == 3


async def test_billed_parts_are_those_spent_and_those_in_the_ledger_and_a_second_run_costs_nothing(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    queries = [FLIP_FLOP, DIODE, UNKNOWN, FLIP_FLOP]
    async with opened(sandbox, file, time) as source:
        assert await source.estimate(queries) == CostEstimate(3, 0, 3, 1)
        assert sandbox.request_counts.graphql == 0
        first = await fetched(source, *queries)
        assert source.parts_spent == billed(sandbox) == 2
        assert source.upstream_requests == 1
        assert await source.estimate(queries) == CostEstimate(3, 3, 0, 0)
    assert await booked(sandbox, file, time) == 2
    time.advance(3600)
    async with opened(sandbox, file, time) as source:
        # That there is no such part is asked again, free of charge.
        assert await source.estimate(queries) == CostEstimate(3, 2, 1, 1)
        second = await fetched(source, *queries)
        assert (source.parts_spent, source.upstream_requests, billed(sandbox)) == (0, 1, 2)
    assert second == {**first, UNKNOWN: first[UNKNOWN]._replace(fetched=time.now())}
    assert [second[query].fetched for query in (FLIP_FLOP, DIODE)] == [time.now() - 3600] * 2


async def test_results_are_fetched_again_before_they_are_a_day_old(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    async with opened(sandbox, file, time) as source:
        await fetched(source, DIODE)
        time.advance(23.5 * 3600 - 1)
        assert (await source.estimate([DIODE])).stored == 1
        time.advance(2)
        assert (await source.estimate([DIODE])).stored == 0
        result = (await fetched(source, DIODE))[DIODE]
        assert (result.fetched, source.parts_spent) == (time.now(), 2)


async def test_thousand_lines_take_ten_requests_and_then_none(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock
) -> None:
    queries = numbers(NUMBERS)
    async with serve(numbered, applications=single_application(part_limit=NUMBERS)) as sandbox:
        async with opened(sandbox, file, time) as source:
            results = await fetched(source, *queries, *queries)
            assert sum(len(result.parts) for result in results.values()) == NUMBERS
            assert (source.parts_spent, source.upstream_requests) == (NUMBERS, NUMBERS // 100)
            assert (billed(sandbox), sandbox.request_counts.graphql) == (NUMBERS, NUMBERS // 100)
        assert await booked(sandbox, file, time) == NUMBERS
        async with opened(sandbox, file, time) as source:
            assert await source.estimate(queries) == CostEstimate(NUMBERS, NUMBERS, 0, 0)
            assert len(await fetched(source, *queries)) == NUMBERS
            assert (source.parts_spent, source.upstream_requests, billed(sandbox)) == (0, 0, NUMBERS)


async def test_candidates_pay_for_what_is_beyond_the_first_part_only(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    query = PartQuery("LM358N")
    async with opened(sandbox, file, time) as source:
        assert len((await fetched(source, query))[query].parts) == 1
        more = query._replace(limit=3)
        found = (await fetched(source, more))[more]
        assert len(found.parts) == 3
        assert source.parts_spent == billed(sandbox) == 3
        assert await source.estimate([more]) == CostEstimate(1, 1, 0, 0)
        assert await source.estimate([query._replace(limit=5)]) == CostEstimate(1, 0, 1, 1)
