"""Bounds of one GraphQL request: body, document, response and time."""

import gzip
import io
import json
from collections.abc import AsyncIterator

import pytest
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox.graphql import documents, errors, executor, schema, transport
from proxy.kit import clock

LAST = documents.MAX_DEPTH
GRAPHQL = "application/graphql-response+json"
CHAIN = range(2000)


def nested(levels: int) -> str:
    return "{ supCategories {" + "children{" * (levels - 2) + "id" + "}" * (levels - 2) + "} }"


def wide(fields: int) -> str:
    return "{" + " ".join(f"a{n}: __typename" for n in range(fields)) + "}"


def spread(fragments: int) -> str:
    """Each fragment has the next one twice."""
    chained = (f"fragment F{n} on SupCategory {{ a: children {{ ...F{n + 1} }} b: children {{ ...F{n + 1} }} }}"
               for n in range(fragments))  # fmt: skip
    return "{ supCategories { ...F0 } } " + " ".join(chained) + f" fragment F{fragments} on SupCategory {{ id }}"


HOSTILE = {
    "thousands of aliases": wide(5000),
    "one field over and over": "{ supManufacturers {" + " name" * 2000 + "} }",
    "one list over and over": "{" + ' supManufacturers(ids: ["1"]) { id name }' * 600 + "}",
    "selections in selections": "{" + "a{" * 3000 + "b" + "}" * 3000 + "}",
    "lists in lists": "{ supParts(ids: " + "[" * 5000 + "]" * 5000 + ") { id } }",
    "objects in objects": '{ supSearch(q: "x", filters: ' + "{a: " * 5000 + "1" + "}" * 5000 + ") { hits } }",
    "more tokens than are read": "{" + " a" * 30_000 + "}",
    "a comment without an end": "{ __typename } #" + "x" * documents.MAX_LENGTH,
    "fragments that double": spread(20),
    "a chain of fragments": "{ supCategories { ...F0 } } "
    + " ".join(f"fragment F{n} on SupCategory {{ ...F{n + 1} }}" for n in CHAIN)
    + f" fragment F{len(CHAIN)} on SupCategory {{ id }}",
    "a circle of fragments": "{ supCategories { ...F0 } } "
    + " ".join(f"fragment F{n} on SupCategory {{ ...F{(n + 1) % len(CHAIN)} }}" for n in CHAIN),
    "one directive over and over": "{ supManufacturers " + "@include(if: true) " * 3000 + "{ id } }",
    "types of fields of types": "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_document_gets_400_and_the_next_request_succeeds(caller: SandboxClient, document: str) -> None:
    response = await caller.ask(document)
    assert response.status == 400
    assert response.messages
    assert "data" not in response.body
    assert (await caller.ask("{ __typename }")).status == 200


async def test_document_depth_is_limited(caller: SandboxClient) -> None:
    assert "errors" not in (await caller.ask(nested(LAST))).body
    response = await caller.ask("\n" + nested(LAST + 1))
    assert response.status == 400
    (error,) = response.body["errors"]
    assert error == {
        "message": f"The GraphQL document has an execution depth of {LAST + 1} "
        f"which exceeds the max allowed execution depth of {LAST}.",
        "locations": [{"line": 2, "column": 1}],
        "extensions": {"allowedExecutionDepth": LAST, "detectedExecutionDepth": LAST + 1},
    }


async def test_document_fields_are_limited(caller: SandboxClient) -> None:
    assert len((await caller.ask(wide(documents.MAX_FIELDS))).data) == documents.MAX_FIELDS
    response = await caller.ask(wide(documents.MAX_FIELDS + 1))
    assert (response.status, response.body["errors"][0]["extensions"]) == (400, {"code": "HC0011"})
    assert f"more than {documents.MAX_FIELDS} fields" in response.messages[0]


async def test_body_length_is_limited_for_every_encoding(caller: SandboxClient) -> None:
    async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    def padded(length: int) -> bytes:
        return json.dumps({"query": "{ __typename }"}).encode().ljust(length)

    headers = {"Content-Type": "application/json", "token": caller.token}
    packed = {**headers, "Content-Encoding": "gzip"}
    most, more = padded(transport.MAX_BODY), padded(transport.MAX_BODY + 1)
    for body, said, status in (
        (io.BytesIO(most), headers, 200),
        (io.BytesIO(more), headers, 413),
        (in_pieces(most), headers, 200),
        (in_pieces(more), headers, 413),
        (gzip.compress(most), packed, 200),
        (gzip.compress(more), packed, 413),
    ):
        response = await caller.post(caller.sandbox.graphql_url, data=body, headers=said)
        assert response.status == status
        assert status == 200 or response.body["errors"][0]["extensions"]["code"] == "HC0010"


async def test_a_response_with_too_many_fields_is_rejected_and_not_billed(start: StartSandbox) -> None:
    query = '{{ supSearch(q: "", limit: {}) {{ results {{ part {{ mpn similarParts {{ id }} }} }} }} }}'
    async with start(answer_fields=100) as caller:
        assert (await caller.ask(query.format(1))).status == 200
        response = await caller.ask(query.format(90))
        assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) == 1
    assert response.status == 400
    assert response.messages == ["The maximum allowed operation complexity was exceeded."]
    assert response.body["errors"][0]["extensions"] == {"allowedComplexity": 100, "code": "HC0047"}


class HastyClock(clock.ManualClock):
    """A clock whose monotonic time advances by `pace` seconds at each reading."""

    pace = 0.0

    def monotonic(self) -> float:
        self.advance(self.pace)
        return super().monotonic()


@pytest.fixture
def manual_clock() -> HastyClock:
    return HastyClock()


@pytest.mark.parametrize("accept, status", [("*/*", 500), ("application/json", 200), (GRAPHQL, 500)])
async def test_an_execution_that_times_out_gets_its_own_error(
    caller: SandboxClient, manual_clock: HastyClock, accept: str, status: int
) -> None:
    headers = {"token": caller.token, "Accept": accept}
    query = '{ supSearch(q: "", limit: 20) { results { part { sellers { company { id name slug } } } } } }'
    manual_clock.pace = 1.0
    response = await caller.ask(query, headers=headers)
    assert response.status == status
    assert response.body["errors"] == [
        {
            "message": "The request exceeded the configured timeout of `00:00:30`.",
            "extensions": {"code": "HC0045"},
        }
    ]
    assert "data" not in response.body
    assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) == 0
    manual_clock.pace = 0.0
    assert len((await caller.ask(query, headers=headers)).data["supSearch"]["results"]) == 20


@pytest.mark.parametrize(
    "seconds, written",
    [(30, "00:00:30"), (0.5, "00:00:00.5000000"), (5405, "01:30:05"), (1e-7, "00:00:00.0000001")],
)
def test_a_timeout_is_formatted_as_the_service_does(seconds: float, written: str) -> None:
    assert f"`{written}`" in errors.timed_out(seconds).errors[0]["message"]


def test_an_execution_budget_detects_a_timeout_within_a_hundred_fields() -> None:
    time = clock.ManualClock()
    budget = executor.ExecutionBudget(time, 5, 10_000)
    budget.spend(1)
    time.advance(6)

    def use() -> None:
        for _ in range(100):
            budget.spend(1)

    with pytest.raises(errors.RequestError) as refused:
        use()
    assert refused.value.errors[0]["extensions"] == {"code": "HC0045"}


def test_cached_documents_are_bounded_by_their_length() -> None:
    read = documents.DocumentCache(schema.build())
    texts = [f"{{ __typename }} # {n}" + "x" * (documents.MAX_LENGTH - 100) for n in range(6)]
    first = [read.read(text) for text in texts]
    again = [read.read(text) is document for text, document in reversed(list(zip(texts, first, strict=True)))]
    assert again[0]
    assert not again[-1]
