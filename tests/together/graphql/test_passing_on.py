"""Design data, the organization and mutations: the caller's own, with the own token, unmetered and uncached."""

from typing import Any

from support import cases
from together.graphql.conftest import Pair

import nexar_sandbox

OWN = "X-Nexar-Authorization"
ORGANIZATIONS = "{ admOrganizations { name } }"
WORKSPACES = "{ desWorkspaceInfos { name } }"
MUTATION = """mutation ($id: String!) { desDeleteComment(input: {entityId: "x", commentThreadId: $id, commentId: "c"}) {
  errors { message } } }"""
SUPPLY = '{ supParts(ids: ["1"]) { mpn } }'


async def test_wrong_own_token_is_refused_by_the_upstream(pair: Any) -> None:
    async with pair() as both:
        reply = await both.ask(ORGANIZATIONS, **{OWN: "Bearer of-nobody"})
        assert reply.errors[0][1] == "AuthInvalidToken"
        assert reply.status == 401


@cases.parametrize("document")
async def test_document_that_mixes_both_is_refused(pair: Any, document: str) -> None:
    async with pair() as both:
        sent = len(both.environment.sandbox.documents)
        reply = await both.ask(document, **{OWN: f"Bearer {both.token}"})
        assert reply.status == 400
        assert "two requests" in reply.json["errors"][0]["message"]
        assert len(both.environment.sandbox.documents) == sent


async def test_operations_of_both_kinds_in_one_document_never_pass_parts_on(pair: Any) -> None:
    """An operation for parts beside one for design data would be charged to the caller's token."""
    document = f"query Own {ORGANIZATIONS} query Parts {SUPPLY}"
    async with pair() as both:
        for name in ("Own", "Parts"):
            sent, before = len(both.environment.sandbox.documents), oracle_usage(both)
            reply = await both.ask(document, None, name, **{OWN: f"Bearer {both.token}"})
            assert reply.status == 400
            assert (len(both.environment.sandbox.documents), oracle_usage(both)) == (sent, before)


async def test_subscription_is_refused_as_by_the_upstream(pair: Any) -> None:
    document = 'subscription { desOnCommentUpdated(input: {token: "t", projectId: "p"}) { projectId } }'
    async with pair() as both:
        reply = await both.ask(document, **{OWN: f"Bearer {both.token}"})
        assert reply.data is None
        assert reply.json["errors"]


async def test_own_token_is_not_sent_with_queries_for_parts(pair: Any) -> None:
    async with pair() as both:
        before = oracle_usage(both)
        assert (await both.ask(SUPPLY, **{OWN: f"Bearer {both.token}"})).status == 200
        assert oracle_usage(both) == before


def oracle_usage(both: Pair) -> int:
    """Return the parts that the caller's own application has used."""
    return both.environment.sandbox.part_usage.used("oracle")


async def test_refusal_of_the_upstream_says_when_to_come_back_and_what_it_is(pair: Any) -> None:
    async with pair() as both:
        both.environment.sandbox.faults.replace(nexar_sandbox.parse_faults("429 retry_after=9"))
        reply = await both.ask(ORGANIZATIONS, **{OWN: f"Bearer {both.token}"})
        assert (reply.status, reply.headers["Retry-After"]) == (429, "9")
        assert reply.headers["Content-Type"].startswith("text/plain")
