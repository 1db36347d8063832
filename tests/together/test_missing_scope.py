"""Tests of an application without the supply domain: the error names the application, the scope and the remedy."""

import io
from typing import Any

from together.environment import StartEnvironment, single_application

ONE = {"mpn": "SN74S74N"}
ADVICE = (
    "supply data needs the scope supply.domain: check that the application has the Supply domain in the portal, or "
    "use the client id and secret of one that has"
)
MESSAGE = f"the identity service refuses application demo: invalid_scope; {ADVICE}"
DESIGN_ONLY: dict[str, Any] = {"applications": single_application(domains=("design",))}


async def test_missing_scope_is_explained_not_retried_and_no_failure(
    start: StartEnvironment, log_output: io.StringIO
) -> None:
    async with start(sandbox=DESIGN_ONLY) as environment:
        replies = [await environment.failure(ONE) for _ in range(2)]
        ready = await environment.get("/readyz")
        metrics = (await environment.get("/metrics")).body.decode()
        services = [entry.service for entry in environment.sandbox.journal.last(100)]
        assert environment.billed_parts == 0
    for reply in replies:
        assert reply.status == 502
        assert (reply.json["__class__"], reply.json["message"]) == ("ServerErrorResponse", MESSAGE)
    assert ready.status == 503
    assert MESSAGE in ready.body.decode()
    assert "application demo" in log_output.getvalue()
    assert "scope supply.domain" in log_output.getvalue()
    assert (services.count("graphql"), services.count("token")) == (0, 1)
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line.startswith("v3bridge_parts_"))
    for name in ("used", "uncertain", "reserved"):
        assert lines[f'v3bridge_parts_{name}{{quota_account="demo"}}'] == "0.0"
    assert 'v3bridge_parts_returned_total{application="demo"}' not in lines


async def test_application_is_served_after_the_scope_is_granted(start: StartEnvironment) -> None:
    async with start(sandbox=DESIGN_ONLY) as environment:
        assert (await environment.failure(ONE)).status == 502
        [changed] = single_application(domains=("supply",))
        environment.sandbox.applications.replace(changed)
        assert (await environment.failure(ONE)).status == 502
        environment.time.advance(31)  # the pause after a refusal
        assert (await environment.results(ONE))[0]["hits"] > 0
        assert (await environment.get("/readyz")).status == 200
