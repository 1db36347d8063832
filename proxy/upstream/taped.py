"""The GraphQL client with a tape: one notes what the service said to each request, one answers from such notes.

Put in instead of the plain client where answers are recorded or played back, by whoever runs a comparison. Notes are
kept by the id of the v3 request that they were asked for; answers to operations without variables are the same for
whoever asks, and are kept once. Knows neither files nor keys. What is played costs nothing and reaches nobody.
"""

from typing import Any, TypeVar

import graphql as language
import msgspec

from proxy import errors, model
from proxy.telemetry.request_ids import REQUEST_ID
from proxy.upstream import classify, graphql, http_post, tokens

T = TypeVar("T")

AGAIN = "record again"


class Noted(msgspec.Struct, frozen=True):
    """One operation and its answer. `variables` is their JSON with sorted names, `document` the query's text."""

    name: str
    variables: str
    document: str
    status: int
    body: bytes

    @property
    def shared(self) -> bool:
        """Whether everybody who asks it is told the same."""
        return self.variables == "{}"


class _Asked(msgspec.Struct, frozen=True):
    """What an operation's payload holds."""

    query: str
    variables: dict[str, Any] = {}


class Tape:
    """What was noted, until it is taken."""

    def __init__(self) -> None:
        self._notes: dict[str, dict[tuple[str, str, str], Noted]] = {}
        self._shared: list[Noted] = []

    def note(self, request_id: str, noted: Noted) -> None:
        """Of the same operation asked again, the last answer counts."""
        if noted.shared:
            self._shared.append(noted)
        else:
            key = noted.name, noted.variables, noted.document
            self._notes.setdefault(request_id, {})[key] = noted

    def take(self, request_id: str) -> tuple[Noted, ...]:
        """What was asked for a request. It is noted no longer."""
        return tuple(self._notes.pop(request_id, {}).values())

    def take_shared(self) -> tuple[Noted, ...]:
        """What is the same for everybody, and was asked since this was last taken."""
        taken, self._shared = tuple(self._shared), []
        return taken


class NotingGraphQLClient(graphql.GraphQLClient):
    """The same client; every answer that it gets is noted."""

    def __init__(self, *arguments: Any, tape: Tape, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tape = tape

    async def _send(
        self, operation: classify.Operation[T], token: str, left: float, most: int
    ) -> http_post.HttpResponse:
        reply = await super()._send(operation, token, left, most)
        document, variables = _read(operation)
        self._tape.note(REQUEST_ID.get(), Noted(operation.name, variables, document, reply.status, reply.body))
        return reply


class Player:
    """Notes to answer from, and what was asked of them in vain."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[Noted, ...]] = {}
        self._shared: dict[tuple[str, str], Noted] = {}
        self._lacking: dict[str, str] = {}
        self._missing: dict[tuple[str, str], tuple[str, ...]] = {}

    def share(self, noted: Noted) -> None:
        """Have an answer for everybody."""
        self._shared[noted.name, noted.document] = noted

    def load(self, request_id: str, notes: tuple[Noted, ...]) -> None:
        """Have the answers for a request."""
        self._loaded[request_id] = notes

    def unload(self, request_id: str) -> str | None:
        """Have them no longer. Gives what they lacked, in words, None where nothing."""
        self._loaded.pop(request_id, None)
        return self._lacking.pop(request_id, None)

    def find(self, request_id: str, operation: classify.Operation[Any]) -> Noted:
        """The answer to an operation. Raises UpstreamUnreadable where nothing recorded is one."""
        document, variables = _read(operation)
        known = (*self._loaded.get(request_id, ()), *self._shared.values())
        same = [each for each in known if (each.name, each.variables) == (operation.name, variables)]
        lacks = [(self._lacks(document, each.document), each) for each in reversed(same)]
        for missing, noted in lacks:
            if not missing:
                return noted
        what = ", ".join(min(lacks, key=lambda each: len(each[0]))[0][:3]) if lacks else operation.name
        words = f"the mappings ask for more than was recorded ({what}): {AGAIN}"
        self._lacking[request_id] = words
        raise errors.UpstreamUnreadable(words)

    def _lacks(self, today: str, recorded: str) -> tuple[str, ...]:
        """The fields that a document of today asks for and the recorded one does not."""
        pair = today, recorded
        if pair not in self._missing:
            self._missing[pair] = () if today == recorded else tuple(sorted(fields(today) - fields(recorded)))
        return self._missing[pair]


class PlayedGraphQLClient(graphql.GraphQLClient):
    """Answers from notes; asks for no token and sends nothing."""

    def __init__(self, *arguments: Any, player: Player, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._player = player

    async def ask(
        self,
        operation: classify.Operation[T],
        credentials: tokens.Credentials,  # noqa: ARG002
        since: float | None = None,  # noqa: ARG002
        beside: list[model.GraphQLError] | None = None,  # noqa: ARG002
    ) -> T:
        """The recorded data. Raises what the service's answer came to then, or UpstreamUnreadable."""
        noted = self._player.find(REQUEST_ID.get(), operation)
        reply = http_post.HttpResponse(noted.status, noted.body)
        try:
            return self._data(operation, reply, classify.read(operation, reply))
        except errors.QuotaExhausted as error:  # was so then: nobody is to be locked out for it now
            raise errors.QueryRefused(error.message) from error


def fields(document: str) -> frozenset[str]:
    """Every field of a GraphQL document, with its arguments, as a path such as `supSearch(q: $q).results.part.mpn`."""
    parsed = language.parse(document, no_location=True)
    fragments = {
        each.name.value: each for each in parsed.definitions if isinstance(each, language.FragmentDefinitionNode)
    }
    found: set[str] = set()

    def walk(selection: language.SelectionSetNode | None, above: str) -> None:
        for node in selection.selections if selection else ():
            if isinstance(node, language.FieldNode):
                here = f"{above}{language.print_ast(_bare(node))}"
                found.add(here)
                walk(node.selection_set, f"{here}.")
            elif isinstance(node, language.InlineFragmentNode):
                walk(node.selection_set, above)
            elif isinstance(node, language.FragmentSpreadNode):
                walk(fragments[node.name.value].selection_set, above)

    for each in parsed.definitions:
        if isinstance(each, language.OperationDefinitionNode):
            walk(each.selection_set, "")
    return frozenset(found)


def _bare(node: language.FieldNode) -> language.FieldNode:
    """A field without what is below it."""
    return language.FieldNode(alias=node.alias, name=node.name, arguments=node.arguments, directives=())


def _read(operation: classify.Operation[Any]) -> tuple[str, str]:
    """An operation's document, and its variables as JSON with sorted names."""
    asked = msgspec.json.decode(operation.payload, type=_Asked)
    return asked.query, msgspec.json.encode(asked.variables, order="sorted").decode()
