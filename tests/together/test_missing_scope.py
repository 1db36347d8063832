"""Tests of an application without the supply domain: the error names the application, the scope and the remedy."""

import io
from typing import Any

import pytest
from together.environment import StartEnvironment, single_application

ONE = {"mpn": "SN74S74N"}
ADVICE = (
    "supply data needs the scope supply.domain: check that upstream.scope has it and that the application has the "
    "Supply domain in the portal, or use the client id and secret of one that has"
)
BY_IDENTITY = f"the identity service refuses application demo: invalid_scope; {ADVICE}"
BY_QUERY = (
    "the GraphQL service refuses supMultiMatch to application demo: its token lacks a scope (AUTH_NOT_AUTHORIZED); "
    + ADVICE
)
DESIGN_ONLY: dict[str, Any] = {"applications": single_application(domains=("design",))}


@pytest.mark.parametrize(
    "scope, message, requests",
    [("supply.domain", BY_IDENTITY, 0), ("", BY_QUERY, 1)],
    ids=["scope asked for", "scope left out"],
)
async def test_missing_scope_is_explained_not_retried_and_no_failure(
    start: StartEnvironment, log_output: io.StringIO, scope: str, message: str, requests: int
) -> None:
    upstream = {"scope": scope}
    async with start(
        sandbox=DESIGN_ONLY, upstream=upstream, translation={"single_query": "supMultiMatch"}
    ) as environment:
        replies = [await environment.failure(ONE) for _ in range(2)]
        ready = await environment.get("/readyz")
        metrics = (await environment.get("/metrics")).body.decode()
        services = [entry.service for entry in environment.sandbox.journal.last(100)]
        assert environment.billed_parts == 0
    for reply in replies:
        assert reply.status == 502
        assert (reply.json["__class__"], reply.json["message"]) == ("ServerErrorResponse", message)
    assert ready.status == 503
    assert message in ready.body.decode()
    assert "application demo" in log_output.getvalue()
    assert "scope supply.domain" in log_output.getvalue()
    assert (services.count("graphql"), services.count("token")) == (requests, 1)
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line.startswith("v3bridge_parts_"))
    for name in ("used", "uncertain", "reserved"):
        assert lines[f'v3bridge_parts_{name}{{quota_account="demo"}}'] == "0.0"
    assert 'v3bridge_parts_returned_total{application="demo"}' not in lines


async def test_application_is_served_after_the_scope_is_granted(start: StartEnvironment) -> None:
    async with start(sandbox=DESIGN_ONLY, upstream={"scope": ""}) as environment:
        assert (await environment.failure(ONE)).status == 502
        [changed] = single_application(domains=("supply",))
        environment.sandbox.applications.replace(changed)
        assert (await environment.failure(ONE)).status == 502
        environment.time.advance(31)  # the pause after a refusal
        assert (await environment.results(ONE))[0]["hits"] > 0
        assert (await environment.get("/readyz")).status == 200
