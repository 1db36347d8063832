"""Tests of every row about responses in docs/explanation/faults.md, sent through the proxy over sockets."""

import pytest
from support.scripted_upstream import ScriptedResponse
from together import upstream_responses
from together.test_faults import scripted_environment

from proxy import config

NEVER = config.BreakerSettings(failures=0)
WORST = 6  # parts that the two queries of a request may cost


def test_upstream_responses_page_is_up_to_date() -> None:
    page = upstream_responses.PAGE.read_text("utf-8")
    assert page == upstream_responses.page(), "renew it with: python tests/together/upstream_responses.py"


@pytest.mark.parametrize("row", upstream_responses.rows(), ids=lambda row: f"{row.status} {row.body}")
async def test_upstream_response_becomes_the_documented_response(row: upstream_responses.ResponseRow) -> None:
    answer = ScriptedResponse(upstream_responses.BODIES[row.body], row.status)
    async with scripted_environment(answer, retries=1, breaker=NEVER) as environment:
        reply = await environment.reply()
        assert (reply.status, len(environment.upstream.requests)) == (row.client, 2 if row.sent_again else 1)
        assert reply.headers.get("x-parts-cost", "0") == str(WORST if row.uncertain else 0)
    async with scripted_environment(answer, retries=0, breaker=config.BreakerSettings(failures=1)) as environment:
        await environment.reply()
        assert (await environment.metric('v3bridge_circuit_breaker_state{service="graphql"}') == 2.0) is row.failure
