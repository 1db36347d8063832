"""Recording and replay of GraphQL responses: one client records each response, one responds from recordings.

Comparisons use them in place of the GraphQL client. Recordings belong to the id of the v3 request that caused them;
responses to operations without variables are the same for all requests and are recorded once. Replay sends nothing and
costs no parts. Files and API keys are not known here: traffic/recording has them.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import graphql as language
import msgspec

from proxy import errors, model
from proxy.telemetry import activity
from proxy.telemetry.request_ids import REQUEST_ID
from proxy.upstream import classify, graphql, http_post, stalls
from proxy.upstream.auth import identity

T = TypeVar("T")

RECORD_AGAIN = "record again"


class RecordedGraphQLResponse(msgspec.Struct, frozen=True):
    """Operation and its response. `variables` is JSON with sorted names, `document` the GraphQL text."""

    name: str
    variables: str
    document: str
    status: int
    body: bytes

    @property
    def shared(self) -> bool:
        """Whether the response is the same for all requests."""
        return self.variables == "{}"


class _Payload(msgspec.Struct, frozen=True):
    """Payload of an operation."""

    query: str
    variables: dict[str, Any] = {}


class ResponseRecorder:
    """Recorded responses, until they are taken."""

    def __init__(self) -> None:
        self._by_request: dict[str, dict[tuple[str, str, str], RecordedGraphQLResponse]] = {}
        self._shared: dict[tuple[str, str], RecordedGraphQLResponse] = {}

    def record(self, request_id: str, response: RecordedGraphQLResponse) -> None:
        """Record a response; it replaces that of an earlier attempt of the same operation."""
        if response.shared:
            self._shared[response.name, response.document] = response
        else:
            key = response.name, response.variables, response.document
            self._by_request.setdefault(request_id, {})[key] = response

    def take(self, request_id: str) -> tuple[RecordedGraphQLResponse, ...]:
        """Remove and return the responses of a request."""
        return tuple(self._by_request.pop(request_id, {}).values())

    def take_shared(self) -> tuple[RecordedGraphQLResponse, ...]:
        """Remove and return the shared responses recorded since the last call."""
        taken, self._shared = tuple(self._shared.values()), {}
        return taken


class RecordingGraphQLClient(graphql.GraphQLClient):
    """GraphQL client that records every response."""

    def __init__(self, *arguments: Any, recorder: ResponseRecorder, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._recorder = recorder

    async def _send(self, operation: classify.GraphQLOperation[T], *arguments: Any) -> http_post.HttpResponse:
        reply = await super()._send(operation, *arguments)
        document, variables = _read(operation)
        self._recorder.record(
            REQUEST_ID.get(), RecordedGraphQLResponse(operation.name, variables, document, reply.status, reply.body)
        )
        return reply


class ResponseReplayer:
    """Recorded responses to replay, and the fields that they lacked."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[RecordedGraphQLResponse, ...]] = {}
        self._shared: dict[tuple[str, str], RecordedGraphQLResponse] = {}
        self._lacking: dict[str, str] = {}
        self._missing: dict[tuple[str, str], tuple[str, ...]] = {}

    def add_shared(self, response: RecordedGraphQLResponse) -> None:
        """Add a response for all requests."""
        self._shared[response.name, response.document] = response

    def load(self, request_id: str, responses: tuple[RecordedGraphQLResponse, ...]) -> None:
        """Add the responses of a request."""
        self._loaded[request_id] = responses

    def unload(self, request_id: str) -> str | None:
        """Remove the responses of a request. Returns a message about what they lacked, None for nothing."""
        self._loaded.pop(request_id, None)
        return self._lacking.pop(request_id, None)

    def find(self, request_id: str, operation: classify.GraphQLOperation[Any]) -> RecordedGraphQLResponse:
        """Return the response to an operation. Raises UpstreamUnreadable if none was recorded."""
        document, variables = _read(operation)
        recorded = (*self._loaded.get(request_id, ()), *self._shared.values())
        same = [each for each in recorded if (each.name, each.variables) == (operation.name, variables)]
        # The latest recording first. One that selects more than is needed today serves as well.
        lacks = [(self._lacks(document, each.document), each) for each in reversed(same)]
        for missing, response in lacks:
            if not missing:
                return response
        # The closest recording names the fewest fields, which are what a mapping has gained since.
        examples = ", ".join(min(lacks, key=lambda each: len(each[0]))[0][:3]) if lacks else operation.name
        message = f"the mappings ask for more than was recorded ({examples}): {RECORD_AGAIN}"
        self._lacking[request_id] = message
        raise errors.UpstreamUnreadable(message)

    def _lacks(self, today: str, recorded: str) -> tuple[str, ...]:
        """Return the fields that a current document selects and the recorded one does not."""
        pair = today, recorded
        # Documents are few and repeat with every request; parsing one takes milliseconds.
        if pair not in self._missing:
            self._missing[pair] = () if today == recorded else tuple(sorted(fields(today) - fields(recorded)))
        return self._missing[pair]


class ReplayingGraphQLClient(graphql.GraphQLClient):
    """GraphQL client that responds from recordings; requests no token and sends nothing."""

    def __init__(self, *arguments: Any, replayer: ResponseReplayer, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._replayer = replayer

    async def execute(
        self,
        operation: classify.GraphQLOperation[T],
        credentials: identity.Credentials,  # noqa: ARG002
        since: float | None = None,  # noqa: ARG002
        partial_errors: list[model.GraphQLError] | None = None,  # noqa: ARG002
        record: activity.OperationRecord | None = None,  # noqa: ARG002
        *,
        watches: Sequence[stalls.StallWatch[Any]] = (),  # noqa: ARG002
    ) -> T:
        """Return the recorded data. Raises the error of the recorded response, or UpstreamUnreadable."""
        recorded = self._replayer.find(REQUEST_ID.get(), operation)
        reply = http_post.HttpResponse(recorded.status, recorded.body)
        try:
            return self._data(operation, reply, classify.decode(operation, reply))
        except errors.QuotaExhausted as error:  # the quota was exhausted when it was recorded; it is not now
            raise errors.QueryRefused(error.message) from error


def fields(document: str) -> frozenset[str]:
    """Return the paths of all fields of a document, with arguments: `supSearch(q: $q).results.part.mpn`."""
    parsed = language.parse(document, no_location=True)
    fragments = {
        each.name.value: each for each in parsed.definitions if isinstance(each, language.FragmentDefinitionNode)
    }
    paths: set[str] = set()

    def walk(selection: language.SelectionSetNode | None, above: str) -> None:
        for node in selection.selections if selection else ():
            if isinstance(node, language.FieldNode):
                here = f"{above}{language.print_ast(_bare(node))}"
                paths.add(here)
                walk(node.selection_set, f"{here}.")
            elif isinstance(node, language.InlineFragmentNode):
                walk(node.selection_set, above)
            elif isinstance(node, language.FragmentSpreadNode):
                walk(fragments[node.name.value].selection_set, above)

    for each in parsed.definitions:
        if isinstance(each, language.OperationDefinitionNode):
            walk(each.selection_set, "")
    return frozenset(paths)


def _bare(node: language.FieldNode) -> language.FieldNode:
    """Return a field without its selection set."""
    return language.FieldNode(alias=node.alias, name=node.name, arguments=node.arguments, directives=())


def _read(operation: classify.GraphQLOperation[Any]) -> tuple[str, str]:
    """Return the document of an operation, and its variables as JSON with sorted names."""
    payload = msgspec.json.decode(operation.payload, type=_Payload)
    return payload.query, msgspec.json.encode(payload.variables, order="sorted").decode()
