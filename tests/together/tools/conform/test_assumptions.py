"""Every assumption holds on the sandbox, and is contradicted by a scripted upstream that answers otherwise.

The upstream has the sandbox's answers to the probes, of which `ALTERED` has one other value for each assumption.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from support import small_catalog

import nexar_sandbox
from proxy.tools.conform import assumptions, command, run
from proxy.tools.conform.run import Account, Answer, Assumption, Probe, Service

SENT = {"data": {"supMultiMatch": [], "supSearch": {"hits": 1, "results": []}, "unknown": {"hits": 1}}}

# A place in the answer to the last probe (or `status`, `billed`) and its value there, by assumption.
ALTERED: dict[str, tuple[str, Any]] = {
    "match-case": ("data.lower.0.hits", 0),
    "match-punctuation": ("data.punctuated.0.hits", 0),
    "match-whole-number": ("data.piece.0.hits", 1),
    "match-several-makers": ("data.shared.0.hits", 1),
    "maker-only-narrows": ("data.same.0.hits", 100),
    "maker-spelling": ("data.alias.0.hits", 0),
    "unknown-maker": ("data.unknown.0.hits", 1),
    "order-code-of-seller": ("data.other.0.hits", 1),
    "mpn-or-sku": ("data.either_sku.0.hits", 0),
    "match-order": ("data.supMultiMatch.0.hits", 1),
    "match-error": ("data.supMultiMatch.2.error", "nothing to search for"),
    "match-without-hits": ("data.supMultiMatch.0.error", "nothing found"),
    "hundred-queries": ("data.supMultiMatch", [{"hits": 0, "error": None}] * 50),
    "match-filters": ("data.filtered.0.hits", 1),
    "match-abroad": ("data.abroad.0.hits", 1),
    "match-pages": ("data.second.0.hits", 1),
    "match-numbers": ("data.first.0.parts.0.mpn", "MBR1020VL-T"),
    "limit-zero-is-free": ("billed", 1),
    "results-are-null-without-hits": ("data.none.results", []),
    "refusal-is-free": ("billed", 1),
    "nested-parts-are-free": ("billed", 2),
    "number-search-order": ("data.supSearchMpn.results.0.part.mpn", "SN74S74NE4"),
    "part-limit-message": ("errors.0.message", "No parts are left."),
    "missing-feature-path": ("errors.0.path", ["supSearchMpn"]),
    "invalid-token-status": ("status", 403),
    "search-every-word": ("data.nonsense.hits", 1),
    "filter-by-name": ("data.name.hits", 0),
    "filter-by-unknown-name": ("data.unknown.hits", 1),
    "filter-values": ("data.two.hits", 0),
    "category-filter": ("data.root.hits", 0),
    "range-ends": ("data.closed.hits", 0),
    "value-filter-displayed": ("data.displayed.hits", 0),
    "unknown-filter": ("", SENT),
    "in-stock": ("data.stocked.hits", 0),
    "maker-counts": ("data.narrow.manufacturerAgg.0.count", 100),
    "seller-counts": ("data.seller.hits", 1),
    "whole-lists": ("data.supSellers", [{"id": "11779"}]),
    "root-category": ("data.supCategories.0.ancestors", [{"id": "1"}]),
    "part-order": ("data.supParts.1", {"mpn": "ANOTHER", "sellers": [], "all": []}),
    "brokers": ("data.supParts.0.sellers", []),
    "stock-codes": ("data.supParts.0.all.0.offers.0.inventoryLevel", -5),
    "times": ("data.supParts.0.all.0.offers.0.updated", "2026-03-01T12:00:00.5Z"),
    "price-order": ("data.supParts.0.all.0.offers.0.prices", [{"quantity": 10}, {"quantity": 1}]),
    "price-currency": ("data.supParts.0.all.0.offers.0.prices", [{"currency": "USD", "convertedCurrency": "USD"}]),
    "converted-price": (
        "data.supParts.0.all.0.offers.0.prices",
        [{"price": 1.5, "conversionRate": 2.0, "convertedPrice": 4.0}],
    ),
    "spec-values": ("data.supParts.0.specs.0.valueType", "range"),
    "spec-texts": ("data.supParts.0.specs", []),
    "token-lifetime": ("expires_in", 3600),
    "earlier-tokens": ("", {"errors": [{"message": "The token is not valid."}]}),
}


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
            probes = dict.fromkeys(probe for assumption in assumptions.ALL for probe in assumption.probes)
            return {probe: await service.send(probe) for probe in probes}

    return asyncio.run(answered())


class ScriptedUpstream:
    """Answers each probe as the sandbox did, but the last one of an assumption with one value altered."""

    def __init__(self, answers: dict[Probe, Answer], assumption: Assumption) -> None:
        self.parts = 0
        self._answers = {_sent(probe): answers[probe] for probe in assumption.probes}
        self._altered, (self._place, self._value) = _sent(assumption.probes[-1]), ALTERED[assumption.name]

    async def respond(self, request: web.Request) -> web.Response:
        if request.path == "/token":
            sent, answer = "", self._answers.get("", Answer(200, {"access_token": "a.b.c"}))
        else:
            content = await request.json()
            sent = _key(content["query"], content["variables"], request.headers["Authorization"].endswith("such.token"))
            answer = self._answers[sent]
        self.parts += answer.billed or 0
        if sent == self._altered:
            answer = self._alter(answer)
        return web.json_response(answer.body, status=answer.status)

    def _alter(self, answer: Answer) -> Answer:
        if self._place == "status":
            return replace(answer, status=self._value)
        if self._place == "billed":
            self.parts += self._value
            return answer
        body = {"": copy.deepcopy(answer.body)}
        *above, last = ["", *filter(None, self._place.split("."))]
        found: Any = body
        for step in above:
            found = found[int(step) if isinstance(found, list) else step]
        found[int(last) if isinstance(found, list) else last] = self._value
        return replace(answer, body=body[""])


def _sent(probe: Probe) -> str:
    return _key(probe.document, probe.variables, probe.token is not None) if probe.document else ""


def _key(document: str, variables: Any, has_other_token: bool) -> str:
    return json.dumps([document, variables, has_other_token])


async def test_every_assumption_is_confirmed_on_the_sandbox_within_the_budget(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    result = await observed_on(catalog, signing_key)
    assert [outcome for outcome in result.outcomes if outcome.verdict != "confirmed"] == []
    assert result.returned == result.billed
    assert result.returned <= result.at_worst <= command.BUDGET == 20


def test_every_assumption_has_an_answer_that_contradicts_it() -> None:
    assert [assumption.name for assumption in assumptions.ALL] == list(ALTERED)


@pytest.mark.parametrize("name", ALTERED)
async def test_another_answer_contradicts(name: str, answers: dict[Probe, Answer]) -> None:
    assumption = next(each for each in assumptions.ALL if each.name == name)
    upstream, application = ScriptedUpstream(answers, assumption), web.Application()
    application.router.add_post("/{path}", upstream.respond)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        own = Account("client", "secret")
        accounts = {probe.account: own for each in assumptions.ALL for probe in each.probes}
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
    assert reasons["match-case"] == "the service finds nothing for plain"
    lists_of_others = ["seller-counts", "whole-lists"]
    assert [each.name for each in result.of("contradicted")] == lists_of_others
