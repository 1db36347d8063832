"""Every assumption holds on the sandbox, and is contradicted by a scripted upstream that answers otherwise.

The upstream has the sandbox's answers to the probes, of which `ALTERED` has another value for each assumption.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from support import small_catalog

import nexar_sandbox
from proxy.tools.conform import assumptions, command, run
from proxy.tools.conform.run import Account, Answer, Probe, Service

SENT = {"data": {"supMultiMatch": [], "supSearch": {"hits": 1, "results": []}, "unknown": {"hits": 1}}}

# An assumption, a place in the answer to its probe (or `status`, `billed`), and another value there.
ALTERED: list[tuple[str, str, Any]] = [
    ("match-spelling", "data.lower.0.hits", 0),
    ("match-spelling", "data.punctuated.0.hits", 0),
    ("match-whole-number", "data.piece.0.hits", 1),
    ("match-makers", "data.shared.0.hits", 1),
    ("match-makers", "data.same.0.hits", 100),
    ("maker-spelling", "data.alias.0.hits", 0),
    ("unknown-maker", "data.unknown.0.hits", 1),
    ("order-code-of-seller", "data.other.0.hits", 1),
    ("mpn-or-sku", "data.either_sku.0.hits", 0),
    ("match-order", "data.supMultiMatch.0.hits", 1),
    ("match-error", "data.supMultiMatch.2.error", "nothing to search for"),
    ("match-without-hits", "data.supMultiMatch.0.error", "nothing found"),
    ("hundred-queries", "data.supMultiMatch", [{"hits": 0, "error": None}] * 50),
    ("match-filters", "data.filtered.0.hits", 1),
    ("match-abroad", "data.abroad.0.hits", 1),
    ("match-pages", "data.second.0.hits", 1),
    ("match-numbers", "data.first.0.parts.0.mpn", "MBR1020VL-T"),
    ("limit-zero-is-free", "billed", 1),
    ("results-are-null-without-hits", "data.none.results", []),
    ("refusal-is-free", "billed", 1),
    ("number-search-order", "data.best.results.0.part.mpn", "SN74S74NE4"),
    ("part-limit-message", "errors.0.message", "No parts are left."),
    ("missing-feature-path", "errors.0.path", ["supSearchMpn"]),
    ("invalid-token-status", "status", 403),
    ("search-every-word", "data.nonsense.hits", 1),
    ("filter-by-name", "data.name.hits", 0),
    ("filter-by-name", "data.unknown.hits", 1),
    ("filter-values", "data.two.hits", 0),
    ("category-filter", "data.root.hits", 0),
    ("range-ends", "data.closed.hits", 0),
    ("value-filter-displayed", "data.displayed.hits", 0),
    ("unknown-filter", "", SENT),
    ("in-stock", "data.stocked.hits", 0),
    ("maker-counts", "data.narrow.manufacturerAgg.0.count", 100),
    ("seller-counts", "data.seller.hits", 1),
    ("whole-lists", "data.supSellers", [{"id": "11779"}]),
    ("root-category", "data.supCategories.0.ancestors", [{"id": "1"}]),
    ("part-order", "data.supParts.1", {"mpn": "ANOTHER", "sellers": [], "all": []}),
    ("brokers", "data.supParts.0.sellers", []),
    ("stock-codes", "data.supParts.0.all.0.offers.0.inventoryLevel", -5),
    (
        "price-tables",
        "data.supParts.0.all.0.offers.0.prices",
        [{"quantity": n, "currency": "USD", "convertedCurrency": "JPY"} for n in (10, 1)],
    ),
    (
        "price-tables",
        "data.supParts.0.all.0.offers.0.prices",
        [{"quantity": 1, "currency": "USD", "convertedCurrency": "USD"}],
    ),
    ("spec-values", "data.supParts.0.specs.0.valueType", "range"),
    ("spec-texts", "data.supParts.0.specs", []),
    ("earlier-tokens", "", {"errors": [{"message": "The token is not valid."}]}),
]


@asynccontextmanager
async def sandbox_service(catalog: nexar_sandbox.Catalog, key: nexar_sandbox.SigningKey) -> AsyncIterator[Service]:
    running = nexar_sandbox.serve(command.conformance_sandbox(), catalog=catalog, key=key)
    async with running as sandbox, aiohttp.ClientSession() as session:
        yield command.sandbox_service(sandbox, session)


async def observed_on(catalog: nexar_sandbox.Catalog, key: nexar_sandbox.SigningKey) -> run.RunResult:
    """The result of a whole run on a sandbox with this catalog."""
    async with sandbox_service(catalog, key) as service:
        selection = run.select(assumptions.ALL, command.BUDGET, service)
        return await run.run(assumptions.ALL, selection, service, lambda _: None)


@pytest.fixture(scope="module")
def answers(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> dict[Probe, Answer]:
    async def answered() -> dict[Probe, Answer]:
        async with sandbox_service(catalog, signing_key) as service:
            return {probe: await service.send(probe) for probe in {each.probe for each in assumptions.ALL}}

    return asyncio.run(answered())


class ScriptedUpstream:
    """Answers a probe as the sandbox did, with one value altered."""

    def __init__(self, answer: Answer, place: str, value: Any) -> None:
        self.parts = 0
        self._billed = value if place == "billed" else answer.billed or 0
        self._status = value if place == "status" else answer.status
        above: dict[str, Any] = {"": copy.deepcopy(answer.body)}
        found: Any = above
        *steps, last = ["", *filter(None, place.split("."))] if place not in ("billed", "status") else ["unread"]
        for step in steps:
            found = found[int(step) if isinstance(found, list) else step]
        found[int(last) if isinstance(found, list) else last] = value
        self._body = above[""]

    async def respond(self, request: web.Request) -> web.Response:
        if request.path == "/token":
            return web.json_response({"access_token": "a.b.c"})
        self.parts += self._billed
        return web.json_response(self._body, status=self._status)


async def test_every_assumption_is_confirmed_on_the_sandbox_within_the_budget(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    result = await observed_on(catalog, signing_key)
    assert [outcome for outcome in result.outcomes if outcome.verdict != "confirmed"] == []
    assert result.returned == result.billed
    assert result.returned <= result.at_worst <= command.BUDGET == 20


def test_every_assumption_has_an_answer_that_contradicts_it() -> None:
    assert [assumption.name for assumption in assumptions.ALL] == list(dict.fromkeys(name for name, *_ in ALTERED))


@pytest.mark.parametrize("name, place, value", ALTERED)
async def test_another_answer_contradicts(name: str, place: str, value: Any, answers: dict[Probe, Answer]) -> None:
    assumption = next(each for each in assumptions.ALL if each.name == name)
    upstream, application = ScriptedUpstream(answers[assumption.probe], place, value), web.Application()
    application.router.add_post("/{path}", upstream.respond)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        accounts = {assumption.probe.account: Account("client", "secret")}
        urls = str(server.make_url("/graphql")), str(server.make_url("/token"))
        service = Service(*urls, accounts, session, lambda: upstream.parts, (0.0, 0.0))
        selection = run.select([assumption], command.BUDGET, service)
        result = await run.run([assumption], selection, service, lambda _: None)
    (outcome,) = result.outcomes
    assert (outcome.verdict, outcome.reason) == ("contradicted", ""), outcome
    assert outcome.observed is not None


async def test_what_is_assumed_of_a_part_is_not_tested_without_it(
    signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> None:
    parts = [part for part in small_catalog.PARTS if part["mpn"] != "SN74S74N"]
    with closing(nexar_sandbox.open_catalog(data=small_catalog.write(tmp_path, parts))) as foreign:
        result = await observed_on(foreign, signing_key)
    reasons = {each.name: each.reason for each in result.outcomes if each.verdict == "not tested"}
    assert reasons["match-spelling"] == "the service finds nothing for plain"
    lists_of_others = ["seller-counts", "whole-lists"]
    assert [each.name for each in result.outcomes if each.verdict == "contradicted"] == lists_of_others
