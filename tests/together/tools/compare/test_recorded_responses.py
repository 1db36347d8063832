"""Test that responses to generated requests are those on record, in responses.txt beside this file.

Of 2 000 requests those are sent that have every pair of features that the 2 000 have.
"""

from pathlib import Path

import pytest
from support import recorded_responses
from together.environment import ProxyEnvironment
from together.tools.compare import generated_requests
from together.tools.compare.comparison import GenerateRequests

from proxy.traffic.v3_request import V3Request

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file
REQUESTS = 2_000


async def test_generated_requests_get_the_recorded_bytes(
    environment: ProxyEnvironment, generate_requests: GenerateRequests, pytestconfig: pytest.Config
) -> None:
    requests = generated_requests.covering_pairs(await generate_requests(REQUESTS))
    renewed = pytestconfig.getoption("--renew-responses")
    different: list[str] = []
    with recorded_responses.opened(Path(__file__).with_name("responses.txt"), renewed=renewed) as recording:
        for request in requests:
            response = await environment.proxy.get(f"/v3{request.target(generated_requests.KEY)}")
            if difference := recording.difference(_name(request), response, await response.text()):
                different.append(difference)
    assert not different, "\n".join(different)
    assert recording.names == {_name(request) for request in requests}


def _name(request: V3Request) -> str:
    return f"{request.origin} {request.path}"
