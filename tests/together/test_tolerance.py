"""The proxy serves clients of an upstream that differs from the contract in whatever responses do not depend on."""

from support import running_proxy
from together.environment import StartEnvironment, single_application

import nexar_sandbox

OTHERWISE = nexar_sandbox.Behavior(
    # GraphQL over HTTP
    trailing_slash=False,
    get_requests=False,
    batching=True,
    token_header=False,
    introspection=False,
    default_media_type="application/graphql-response+json",
    graphql_media_type=False,
    charset=False,
    request_id=False,
    error_request_id=False,
    escaped_ascii="",
    escaped_unicode=False,
    # Errors
    range_error_status=400,
    range_error_path=False,
    missing_token_status=200,
    missing_token_code="AUTH_NOT_AUTHENTICATED",
    invalid_token_status=500,
    invalid_token_message="The token is invalid.",
    token_error_path=False,
    token_error_data=True,
    token_before_document=False,
    document_error_status=200,
    empty_selections=False,
    scope_error_status=403,
    part_limit_status=500,
    part_limit_code="PartLimitExceeded",
    part_limit_data=False,
    feature_error_path=False,
    # Identity
    token_type="JWT",
    token_lifetime=3600,
    expires_in_as_text=True,
    token_scope=False,
    scope_required=True,
    basic_authentication=False,
    no_store=False,
    jwt_scope_as_text=True,
    jwt_validity=600,
    discovery=False,
)


async def test_requests_succeed(start: StartEnvironment) -> None:
    async with start() as usual, start(sandbox={"behavior": OTHERWISE}) as environment:
        queries = {"mpn": "SN74S74N", "reference": "Ω & <é>"}, {"mpn": "no-such-part-number-0"}
        more = "&include[]=specs&include[]=datasheets"
        assert await environment.results(*queries, more=more) == await usual.results(*queries, more=more)
        for path in ("/v3/parts/search?q=SN74S74N", "/v3/brands/search?q=texas", "/v3/sellers/search?q=digi"):
            target = f"{path}&apikey={running_proxy.KEY}"
            expected, response = await usual.get(target), await environment.get(target)
            assert response.status == expected.status == 200
            assert response.json["results"] == expected.json["results"]


async def test_an_expired_token_is_renewed(start: StartEnvironment) -> None:
    async with start(sandbox={"behavior": OTHERWISE}) as environment:
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("expired count=1"))
        assert (await environment.results({"mpn": "SN74S74N"}))[0]["hits"] == 4
        assert environment.sandbox.request_counts.tokens == 2


async def test_an_exhausted_quota_is_recognized(start: StartEnvironment) -> None:
    sandbox = {"behavior": OTHERWISE, "applications": single_application(part_limit=3)}
    async with start(sandbox=sandbox) as environment:
        await environment.results({"mpn": "SN74S74N"})
        failure = await environment.failure({"mpn": "1N4007"})
        assert failure.status == 429
        assert failure.json["message"].startswith("You have exceeded your part limit of 3.")
