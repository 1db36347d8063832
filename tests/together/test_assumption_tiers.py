"""The proxy needs the core assumptions about the transport only: it serves clients where all others are wrong."""

import pytest
from support import running_proxy
from together.environment import StartEnvironment, single_application

import nexar_sandbox
from proxy.tools.conform import reading

TIERS = {assumption.id: assumption.tier for assumption in reading.load(files=("transport.yaml",)).assumptions}


@pytest.fixture(scope="module")
def everything_else_is_wrong() -> nexar_sandbox.Behavior:
    """The behavior with the deviations from all assumptions that are not core."""
    return nexar_sandbox.deviate(name for name in nexar_sandbox.DEVIATIONS if TIERS.get(name, "core") != "core")


async def test_requests_succeed(start: StartEnvironment, everything_else_is_wrong: nexar_sandbox.Behavior) -> None:
    async with start() as usual, start(sandbox={"behavior": everything_else_is_wrong}) as environment:
        queries = {"mpn": "SN74S74N", "reference": "Ω & <é>"}, {"mpn": "no-such-part-number-0"}
        more = "&include[]=specs&include[]=datasheets"
        assert await environment.results(*queries, more=more) == await usual.results(*queries, more=more)
        for path in ("/v3/parts/search?q=SN74S74N", "/v3/brands/search?q=texas", "/v3/sellers/search?q=digi"):
            target = f"{path}&apikey={running_proxy.KEY}"
            expected, response = await usual.get(target), await environment.get(target)
            assert response.status == expected.status == 200
            assert response.json["results"] == expected.json["results"]


async def test_an_expired_token_is_renewed(
    start: StartEnvironment, everything_else_is_wrong: nexar_sandbox.Behavior
) -> None:
    async with start(sandbox={"behavior": everything_else_is_wrong}) as environment:
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("expired count=1"))
        assert (await environment.results({"mpn": "SN74S74N"}))[0]["hits"] == 4
        assert environment.sandbox.request_counts.tokens == 2


async def test_an_exhausted_quota_is_recognized(
    start: StartEnvironment, everything_else_is_wrong: nexar_sandbox.Behavior
) -> None:
    sandbox = {"behavior": everything_else_is_wrong, "applications": single_application(part_limit=3)}
    async with start(sandbox=sandbox) as environment:
        await environment.results({"mpn": "SN74S74N"})
        failure = await environment.failure({"mpn": "1N4007"})
        assert failure.status == 429
        assert failure.json["message"].startswith("You have exceeded your part limit of 3.")
