"""Selection within the budget, and what a response says about an assumption."""

from typing import Any

import msgspec
import pytest
from support import cases
from tools.conform.conftest import SECRET, Connect, ScriptedService

from proxy.tools.conform import probes, reading, runner
from proxy.tools.conform.assumptions import CONDITIONS, Assumption, ProbeRequest, Tier

LIMIT = {"errors": [{"message": "You have exceeded your part limit of 10. Please upgrade your plan."}]}


def _catalogue(*entries: tuple[str, ProbeRequest, Tier]) -> reading.Catalogue:
    """A catalogue with one assumption for each request: that its response has `a`, 1."""
    assumptions = tuple(
        Assumption(name, "", "", "INF", tier, (name,), f"{name}.body.data.a", expected=1) for name, _, tier in entries
    )
    return reading.Catalogue({name: request for name, request, _ in entries}, assumptions)


def _query(name: str, parts: int = 0, **more: Any) -> ProbeRequest:
    return ProbeRequest(document=f"{{ {name} }}", parts=parts, **more)


ACCOUNTS: dict[str | None, probes.Account] = {None: probes.Account("id", SECRET, features=frozenset({"DATASHEETS"}))}


def _selected(catalogue: reading.Catalogue, budget: int) -> tuple[str, ...]:
    return runner.select(catalogue, budget, ACCOUNTS).requests


def test_the_budget_goes_to_core_and_cheap_requests_which_keep_their_order() -> None:
    catalogue = _catalogue(
        ("strict", _query("a", 1), "strict"),
        ("dear", _query("b", 5), "core"),
        ("cheap", _query("c", 2), "core"),
        ("free", _query("d"), "strict"),
        ("complete", _query("e", 2), "complete"),
    )
    assert _selected(catalogue, 20) == ("strict", "dear", "cheap", "free", "complete")
    assert _selected(catalogue, 8) == ("strict", "dear", "cheap", "free")
    assert _selected(catalogue, 4) == ("cheap", "free", "complete")
    assert _selected(catalogue, 0) == ("free",)
    selection = runner.select(catalogue, 4, ACCOUNTS)
    assert (selection.at_worst, selection.left_out["dear"]) == (4, "the budget of 4 parts is too small")


def test_what_the_accounts_do_not_allow_is_left_out_with_the_reason() -> None:
    catalogue = _catalogue(
        ("limited", _query("a", needs="no_parts"), "core"),
        ("gated", _query("b", features=("TECH_SPECS", "DATASHEETS")), "core"),
        ("possible", _query("c", features=("DATASHEETS",)), "core"),
    )
    selection = runner.select(catalogue, 20, ACCOUNTS)
    assert selection.requests == ("possible",)
    assert selection.left_out == {
        "limited": "needs an application without parts (`parts: 0`)",
        "gated": "the application's plan lacks TECH_SPECS (`features`)",
    }


async def _outcome(connect: Connect, service: ScriptedService, status: int, body: Any, **request: Any) -> Any:
    service.responses["{ it }"] = (status, body)
    catalogue = _catalogue(("it", _query("it", **request), "core"))
    async with connect(no_parts=probes.Account("id", SECRET)) as prober:
        selection = runner.select(catalogue, 20, {None: probes.Account(), "no_parts": probes.Account()})
        observed = await runner.run(catalogue, selection, prober)
    return observed.outcomes[0]


@pytest.mark.parametrize(
    "status, body, request_fields, verdict, reason",
    [
        *cases.of(__file__, "a_response_decides"),
        (200, LIMIT, {}, "not tested", "the application's part limit is exhausted"),
        (200, LIMIT, {"needs": "no_parts"}, "contradicted", LIMIT["errors"][0]["message"]),
    ],
)
async def test_a_response_decides(
    connect: Connect,
    service: ScriptedService,
    status: int,
    body: Any,
    request_fields: dict[str, Any],
    verdict: str,
    reason: str,
) -> None:
    outcome = await _outcome(connect, service, status, body, **request_fields)
    assert (outcome.verdict, outcome.reason) == (verdict, reason)


@pytest.mark.parametrize("status, body", [(503, "<html>"), (500, "<html>"), (200, LIMIT), (401, {"errors": []})])
async def test_a_failing_service_does_not_confirm_that_something_is_absent(
    connect: Connect, service: ScriptedService, status: int, body: Any
) -> None:
    service.responses["{ it }"] = (status, body)
    absent = Assumption("it", "", "", "INF", "core", ("it",), "it.body.data.a != `null`", expected=False)
    catalogue = reading.Catalogue({"it": _query("it")}, (absent,))
    async with connect() as prober:
        observed = await runner.run(catalogue, runner.select(catalogue, 20, ACCOUNTS), prober)
    assert observed.outcomes[0].verdict == "not tested"


async def test_a_contradicted_assumption_has_what_was_expected_and_what_was_observed(
    connect: Connect, service: ScriptedService
) -> None:
    outcome = await _outcome(connect, service, 200, {"data": {"a": [2, {"b": None}]}})
    assert msgspec.to_builtins(outcome) == {
        "id": "it",
        "tier": "core",
        "verdict": "contradicted",
        "expected": 1,
        "got": [2, {"b": None}],
    }


@pytest.mark.parametrize("kind", ["graphql", "token"])
async def test_without_an_access_token_nothing_is_sent_and_nothing_is_tested(
    connect: Connect, service: ScriptedService, kind: str
) -> None:
    service.token = (400, {"error": "invalid_client"})
    outcome = await _outcome(connect, service, 200, {"data": {"a": 1}}, parts=3, kind=kind)
    reason = "no access token: the identity service responded 400 invalid_client"
    assert (outcome.verdict, outcome.reason) == ("not tested", reason)
    assert service.paths == ["/token"]


async def test_each_request_is_sent_once_and_its_parts_are_counted(connect: Connect, service: ScriptedService) -> None:
    document = "{ supMultiMatch(queries: []) { parts { id } } }"
    service.responses[document] = (200, {"data": {"supMultiMatch": [{"parts": [{"id": 1}, {"id": 2}]}]}})
    request = ProbeRequest(document=document, parts=3)
    observing = tuple(
        Assumption(f"a{n}", "", "", "INF", "core", ("it",), "length(it.body.data.supMultiMatch[0].parts)", expected=n)
        for n in (1, 2)
    )
    done: list[int] = []
    catalogue = reading.Catalogue({"it": request}, observing)
    async with connect() as prober:
        observed = await runner.run(
            catalogue, runner.select(catalogue, 20, {None: probes.Account()}), prober, done.append
        )
    assert service.paths == ["/token", "/graphql"]
    assert [outcome.verdict for outcome in observed.outcomes] == ["contradicted", "confirmed"]
    assert (observed.cost.returned, observed.cost.at_worst, observed.cost.requests, done) == (2, 3, 1, [1])


@pytest.mark.parametrize("status, uncertain", [(400, 0), (200, 3)])
async def test_parts_are_uncertain_if_a_request_was_sent_and_has_no_response(
    connect: Connect, service: ScriptedService, status: int, uncertain: int
) -> None:
    service.token = (status, service.token[1] if status == 200 else {})
    service.responses["{ it }"] = (ScriptedService.HANGS_UP, "")
    catalogue = _catalogue(("it", _query("it", 3), "core"))
    async with connect() as prober:
        observed = await runner.run(catalogue, runner.select(catalogue, 20, {None: probes.Account()}), prober)
    assert (observed.uncertain, observed.cost.returned) == (uncertain, 0)


async def test_a_service_that_stops_responding_ends_the_run(connect: Connect, service: ScriptedService) -> None:
    names = ["a", "b", "c", "d", "e", "f", "g"]
    catalogue = _catalogue(*((name, _query(name, 1), "core") for name in names))
    for name in ("a", "c", "d", "e"):  # the response to b comes between them
        service.responses[f"{{ {name} }}"] = (ScriptedService.HANGS_UP, "")
    async with connect() as prober:
        observed = await runner.run(catalogue, runner.select(catalogue, 20, ACCOUNTS), prober)
    assert len(service.paths) == 1 + 5
    assert (observed.cost.requests, observed.uncertain) == (5, 4)
    assert [each.verdict for each in observed.outcomes] == ["not tested", "contradicted", *["not tested"] * 5]
    assert {each.reason for each in observed.outcomes[5:]} == {
        "the service left 3 requests in a row without a response"
    }


class _PageSender:
    """Responds to every request with a page, as a captive portal does."""

    token_requests = 0
    secrets: frozenset[str] = frozenset()

    async def log_in(self) -> None:
        """Accept any credentials."""

    async def send(self, request: ProbeRequest) -> probes.ProbeResponse:
        """Respond with the page."""
        return probes.ProbeResponse(200, {}, "<html>", "<html>")


async def test_a_page_in_place_of_every_response_confirms_only_that_something_is_absent() -> None:
    catalogue = reading.load()
    accounts: dict[str | None, probes.Account] = dict.fromkeys([None, *CONDITIONS], probes.Account())
    observed = await runner.run(catalogue, runner.select(catalogue, 20, accounts), _PageSender())
    assert {each.id for each in observed.outcomes if each.verdict == "confirmed"} == {
        "batched-requests",
        "introspection-without-token",
        "default-match-limit",
        "part-limit-code",
        "missing-feature-code",
    }
