"""One GraphQL operation, asked of a service on loopback."""

import json
import random

import pytest
from aiohttp import web
from unit.upstream import answers

from proxy import errors
from proxy.upstream import graphql, tokens


class Store(tokens.Tokens):
    """Tokens without an identity service: t1, t2, …"""

    def __init__(self, clock, metrics) -> None:
        super().__init__(None, "", "", clock=clock, rng=random.Random(1), metrics=metrics)  # type: ignore[arg-type]
        self.handed = 0
        self.current: str | None = None
        self.refusals: list[str] = []

    async def get(self, credentials):
        if self.current is None:
            self.handed += 1
            self.current = f"t{self.handed}"
        return self.current

    def rejected(self, credentials, token):
        if token == self.current:
            self.current = None

    def refused(self, credentials, error):
        self.refusals.append(error.message)


class Upstream:
    """A GraphQL service that gives the answers it was told, the last one for ever."""

    def __init__(self, *told: tuple[int, object]) -> None:
        self.told = list(told)
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append(request)
        self.bodies.append(await request.read())
        status, body = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, content_type="application/json")


GOOD = (200, {"data": answers.GOOD})
EXPIRED = (200, {"errors": [answers.coded("AuthExpiredToken")]})
OPERATION = answers.Operation(payload=b'{"query":"x"}')


@pytest.fixture
def store(clock, metrics):
    return Store(clock, metrics)


@pytest.fixture
def ask(serve, open_session, store, clock, metrics, credentials):
    """Ask one operation of an upstream."""

    async def asking(handler) -> answers.Data:
        async with serve(handler) as url, open_session() as session:
            client = graphql.GraphQLClient(session, url, store, metrics, clock)
            return await client.ask(OPERATION, credentials)

    return asking


async def test_the_operation_goes_out_as_planning_made_it(ask):
    upstream = Upstream(GOOD)
    data = await ask(upstream.answer)
    assert data.supSearchMpn == {"hits": 1}
    (request,) = upstream.seen
    assert upstream.bodies == [OPERATION.payload]
    assert request.headers["Authorization"] == "Bearer t1"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept"] == "application/json"
    assert "Cookie" not in request.headers


@pytest.mark.parametrize("refusal", [EXPIRED, (401, b""), (401, {"errors": [answers.coded("AuthInvalidToken")]})])
async def test_a_refused_token_is_replaced_and_the_request_repeated_once(ask, store, metrics, refusal):
    upstream = Upstream(refusal, GOOD)
    await ask(upstream.answer)
    assert [request.headers["Authorization"] for request in upstream.seen] == ["Bearer t1", "Bearer t2"]
    text = metrics.text().decode()
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="TokenRefused"} 1.0' in text
    assert 'upstream_requests_total{operation="supSearchMpn",outcome="ok"} 1.0' in text
    assert not store.refusals


async def test_a_second_refusal_is_the_credentials_fault(ask, store):
    upstream = Upstream(EXPIRED)
    with pytest.raises(errors.CredentialsRefused, match="takes no token of application demo"):
        await ask(upstream.answer)
    assert len(upstream.seen) == 2
    assert store.current is None
    assert store.refusals == ["the GraphQL service takes no token of application demo"]


@pytest.mark.parametrize(
    "answer, error",
    [
        ((200, {"errors": [answers.fault(answers.PART_LIMIT)]}), errors.PartLimitUsedUp),
        ((200, {"errors": [answers.fault("no")]}), errors.QueryRefused),
        ((500, b""), errors.UpstreamFault),
        ((429, b""), errors.TooManyRequests),
        ((200, b"<html>"), errors.UpstreamUnreadable),
        ((200, b'{"data":'), errors.UpstreamUnreadable),
    ],
)
async def test_no_other_answer_is_asked_for_again(ask, metrics, answer, error):
    upstream = Upstream(answer)
    with pytest.raises(error):
        await ask(upstream.answer)
    assert len(upstream.seen) == 1
    assert f'outcome="{error.__name__}"}} 1.0' in metrics.text().decode()


async def test_errors_beside_data_are_counted_and_logged(ask, metrics, logged):
    faults = [answers.fault("half"), answers.fault("x")]
    await ask(Upstream((200, {"data": answers.GOOD, "errors": faults})).answer)
    assert 'v3bridge_upstream_errors_total{operation="supSearchMpn"} 2.0' in metrics.text().decode()
    assert '"errors": ["half", "x"]' in logged.getvalue()


async def test_a_redirect_is_not_followed(ask):
    async def away(_: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/elsewhere")

    with pytest.raises(errors.UpstreamUnreadable, match="HTTP 307"):
        await ask(away)


async def test_every_request_is_timed(ask, metrics):
    await ask(Upstream(GOOD).answer)
    assert 'v3bridge_upstream_seconds_count{operation="supSearchMpn"} 1.0' in metrics.text().decode()
