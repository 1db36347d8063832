"""Tests of error responses: contract v3-rest.md §5, row by row."""

from typing import TYPE_CHECKING

from support import cases
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, single_application

if TYPE_CHECKING:
    from support.redis_server import RedisServer

ONE = {"mpn": "SN74S74N"}


def shape(reply: RawResponse) -> tuple[int, str]:
    assert set(reply.json) == {"__class__", "message"}
    assert isinstance(reply.json["message"], str)
    assert reply.json["message"]
    return reply.status, reply.json["__class__"]


@cases.parametrize(
    "parameters, says",
    ("&queries=" + "[" * 5_000, "not valid JSON"),
)
async def test_invalid_parameter_is_a_400_that_names_it(
    environment: ProxyEnvironment, parameters: str, says: str
) -> None:
    failure = await environment.get(f"/v3/parts/match?apikey=EXAMPLE_KEY{parameters}")
    assert shape(failure) == (400, "ClientErrorResponse")
    assert says in failure.json["message"]
    assert environment.sandbox.request_counts.graphql == 0


async def test_unavailable_store_fails_readiness(start: StartEnvironment, redis_server: "RedisServer") -> None:
    async with start(store=redis_server.url) as environment:
        redis_server.stop()
        ready = await environment.get("/readyz")
        redis_server.start()
    assert ready.status == 503
    reasons = {reason["check"]: reason["reason"] for reason in ready.json["reasons"]}
    assert "the store (Redis) cannot be used" in reasons["store"]


async def test_refused_credentials_are_a_502_naming_only_the_application(start: StartEnvironment) -> None:
    async with start(application={"client_id": "someone-else"}) as environment:
        failure = await environment.failure(ONE)
        again = await environment.failure(ONE)
        assert environment.sandbox.request_counts.tokens == 1
    assert shape(failure) == shape(again) == (502, "ServerErrorResponse")
    assert "refuses application demo: invalid_client" in failure.json["message"]
    assert "someone-else" not in failure.json["message"]


async def test_refused_currency_is_the_error_of_its_query(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application()}, application={"currency": "XXX"}) as environment:
        (result,) = await environment.results(ONE)
    assert (result["items"], result["hits"], result["error"]) == ([], 0, "currency 'XXX' is not supported")
