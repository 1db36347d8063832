"""GraphQL over HTTP: each audit of the reference implementation's list, by its id, in our own words, over sockets.

The list has grown older and younger versions; where they differ the younger holds (a request that cannot be read is a
400, also in application/json). What the specification says beyond the list is in test_graphql_media_types.py and
test_graphql_get.py.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from support.sandbox_client import SandboxClient

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
ANYTHING = "*/*"
MINIMAL = {"query": "{ __typename }"}
TYPED = {"query": "query Type($name: String!) { __type(name: $name) { name } }", "variables": {"name": "sometype"}}
TYPED_URL = {"query": str(TYPED["query"]), "variables": json.dumps(TYPED["variables"])}
EXTENDED = {**MINIMAL, "extensions": {"some": "value"}}
NO_JSON = b'{ "not a JSON'
UNKNOWN_FIELD = {"query": "{ 8f31403dfe404bccbb0e835f2629c6a7 }"}
COERCION = {"query": "query Refused($id: ID!) { __typename }", "variables": {"id": None}}
NOT_A_STRING: Mapping[str, Any] = {"an object": {"obj": "ect"}, "a number": 0, "a boolean": False, "a list": ["array"]}
NOT_A_MAP: Mapping[str, Any] = {**NOT_A_STRING, "an object": "string"}


class Audit(NamedTuple):
    """A request, and a check of its response. `url`: the parameters are in the URL, by GET."""

    id: str
    says: str
    accept: str | None = None
    body: Any = None
    content_type: str | None = JSON
    url: Mapping[str, str] | None = None
    status: range = range(200, 201)
    kind: str | None = None
    errors: bool | None = None
    data: bool | None = None


OK, BAD = range(200, 201), range(400, 401)
REFUSED, FAILED = range(400, 500), range(400, 600)

AUDITS = [
    # Media types
    Audit("22EB", "the GraphQL media type is sent to whom asks for it", GRAPHQL, MINIMAL, kind=GRAPHQL),
    Audit("4655", "JSON is sent to whom asks for it", JSON, MINIMAL, kind=JSON),
    Audit("47DE", "JSON is sent to whom takes anything", ANYTHING, MINIMAL, kind=JSON),
    Audit("80D8", "JSON is sent to whom does not say", None, MINIMAL, kind=JSON),
    Audit("82A3", "the answer is in UTF-8", None, MINIMAL, kind="charset=utf-8"),
    Audit("BF61", "a body that is said to be in UTF-8 is read so", None,
          {"query": '{ __type(name: "Run🏃Swim🏊") { name } }'}, "application/json; charset=utf-8"),
    Audit("78D5", "a body without a charset is read as UTF-8", None, MINIMAL),
    # Requests
    Audit("2C94", "POST is taken", None, MINIMAL),
    Audit("5A70", "GET is taken", url=MINIMAL),
    Audit("9C48", "a mutation is not taken by GET", GRAPHQL, url={"query": "mutation { __typename }"}, status=REFUSED),
    Audit("9ABE", "a POST without a content type is refused", content_type=None, status=REFUSED),
    Audit("03D4", "a body of JSON is taken", None, MINIMAL, JSON),
    Audit("A5BF", "a POST without a body is a bad request", body=b"", status=BAD),
    Audit("7267", "a POST without a body is answered with errors", body=b"", status=BAD, errors=True),
    # Parameters
    Audit("423L", "a query that is missing is a bad request", GRAPHQL, {"notquery": "{ __typename }"}, status=BAD),
    Audit("34A2", "a query is a string", GRAPHQL, MINIMAL),
    Audit("13EE", "a query is a string, in JSON too", JSON, MINIMAL, errors=False),
    Audit("8161", "an operation name is a string", GRAPHQL,
          {"query": "query Query { __typename }", "operationName": "Query"}),
    Audit("B8B3", "an operation name is a string, in JSON too", JSON,
          {"query": "query Query { __typename }", "operationName": "Query"}, errors=False),
    Audit("2EA1", "variables are a map", GRAPHQL, TYPED),
    Audit("28B9", "variables are a map, in JSON too", JSON, TYPED, errors=False),
    Audit("D6D5", "variables are JSON text in a URL", GRAPHQL,
          url=TYPED_URL),
    Audit("6A70", "variables are JSON text in a URL, in JSON too", JSON,
          url=TYPED_URL, errors=False),
    Audit("428F", "extensions are a map", GRAPHQL, EXTENDED),
    Audit("1B7A", "extensions are a map, in JSON too", JSON, EXTENDED, errors=False),
    *(
        Audit(f"{prefix}{index}", f"{parameter} may be null", accept, {**MINIMAL, parameter: None}, errors=False)
        for prefix, accept in (("94B", GRAPHQL), ("022", JSON))
        for index, parameter in enumerate(("variables", "operationName", "extensions"))
    ),
    *(
        Audit(f"{prefix}{index}", f"{parameter} is not {what}", None, {**MINIMAL, parameter: wrong}, status=BAD)
        for prefix, parameter, values in (
            ("LKJ", "query", NOT_A_STRING),
            ("6C0", "operationName", NOT_A_STRING),
            ("476", "variables", NOT_A_MAP),
            ("58B", "extensions", NOT_A_MAP),
        )
        for index, (what, wrong) in enumerate(values.items())
    ),
    *(
        Audit(f"{prefix}{index}", f"{parameter} is not {what}, for the GraphQL media type", GRAPHQL,
              {**MINIMAL, parameter: wrong}, status=BAD, data=False)
        for prefix, parameter, values in (
            ("4F5", "query", NOT_A_STRING),
            ("E3E", "operationName", NOT_A_STRING),
            ("69B", "variables", NOT_A_MAP),
            ("904", "extensions", NOT_A_MAP),
        )
        for index, (what, wrong) in enumerate(values.items())
    ),
    # What cannot be read
    Audit("B6DC", "what is no JSON is refused", None, NO_JSON, status=REFUSED),
    Audit("BCF8", "what is no JSON is a bad request", None, NO_JSON, status=BAD),
    Audit("60AA", "what is no JSON is refused, for the GraphQL media type", GRAPHQL, NO_JSON, status=REFUSED),
    Audit("2163", "what is no JSON is a bad request, for the GraphQL media type", GRAPHQL, NO_JSON, status=BAD),
    Audit("8764", "a parameter by a wrong name is refused", None, {"qeury": "{ __typename }"}, status=FAILED),
    Audit("3E3A", "a parameter by a wrong name is a bad request", None, {"qeury": "{ __typename }"}, status=BAD),
    Audit("3E36", "a parameter by a wrong name is refused, for the GraphQL media type", GRAPHQL,
          {"qeury": "{ __typename }"}, status=FAILED),
    Audit("17C5", "a parameter by a wrong name is a bad request, for the GraphQL media type", GRAPHQL,
          {"qeury": "{ __typename }"}, status=BAD),
    Audit("34D6", "a parameter by a wrong name gets no data", GRAPHQL, {"qeury": "{ __typename }"}, status=BAD,
          data=False),
    # Documents at fault, in JSON
    Audit("572B", "a document that cannot be parsed is a 200 in JSON", JSON, {"query": "{"}, status=OK, errors=True),
    Audit("FDE2", "a document that is not valid is a 200 in JSON", JSON, UNKNOWN_FIELD, status=OK, errors=True),
    Audit("7B9B", "a variable that does not fit is a 200 in JSON", JSON, COERCION, status=OK, errors=True),
    # Documents at fault, in the GraphQL media type
    Audit("865D", "a document that cannot be parsed is refused", GRAPHQL, {"query": "{"}, status=FAILED),
    Audit("556A", "a document that cannot be parsed is a bad request", GRAPHQL, {"query": "{"}, status=BAD),
    Audit("D586", "a document that cannot be parsed gets no data", GRAPHQL, {"query": "{"}, status=BAD, data=False),
    Audit("51FE", "a document that is not valid is refused", GRAPHQL, UNKNOWN_FIELD, status=FAILED),
    Audit("74FF", "a document that is not valid is a bad request", GRAPHQL, UNKNOWN_FIELD, status=BAD),
    Audit("5E5B", "a document that is not valid gets no data", GRAPHQL, UNKNOWN_FIELD, status=BAD, data=False),
    Audit("86EE", "a variable that does not fit is a bad request", GRAPHQL, COERCION, status=BAD, data=False),
]  # fmt: skip


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: f"{audit.id} {audit.says}")
async def test_the_audits_of_the_reference_implementation_pass(caller: SandboxClient, audit: Audit) -> None:
    headers = {"Accept": audit.accept, "Content-Type": None if audit.url else audit.content_type, **_token(caller)}
    body = audit.body if isinstance(audit.body, bytes | None) else json.dumps(audit.body).encode()
    async with caller.session.request(
        "GET" if audit.url else "POST",
        caller.sandbox.graphql_url,
        params=audit.url,
        data=body,
        headers={name: value for name, value in headers.items() if value is not None},
        skip_auto_headers=("Accept", "Content-Type"),
    ) as response:
        assert response.status in audit.status
        answer = json.loads((await response.read()).decode("utf-8"))
        assert (audit.kind or "") in response.headers["Content-Type"]
    assert audit.errors in (None, "errors" in answer)
    assert audit.data in (None, "data" in answer)


def test_every_audit_is_run_once() -> None:
    ids = [audit.id for audit in AUDITS]
    assert len(set(ids)) == len(ids)


def _token(caller: SandboxClient) -> dict[str, str]:
    """A document at fault needs one (contract graphql.md §3.2)."""
    return {"Authorization": f"Bearer {caller.token}"}
