"""GraphQL operations as values: a document that is fixed, variables that carry everything a client sent.

Made by the planners of this room, asked by upstream. Documents hold names from mapping files only (decision 2).
"""

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model


class Found(msgspec.Struct, frozen=True):
    """What the service answered to one query: part records, all hits, its own error.

    `akas` are the alternate MPNs that were hit, `whole` the result set where more of it is read, `failure` is why the
    service was not, or not rightly, asked at all.
    """

    parts: list[Any]
    hits: int
    error: str | None = None
    akas: list[str | None] | None = None
    whole: Any = None
    failure: errors.BridgeError | None = None

    def with_akas(self) -> Iterator[tuple[Any, str | None]]:
        """Each part with the alternate MPN that the query hit, where it did."""
        return zip(self.parts, self.akas or [None] * len(self.parts), strict=True)


class Outcome(NamedTuple):
    """What became of one query of a v3 request: part records, all hits, an error in words; `failure` as in Found, and
    what a reply says `beside` the parts.
    """

    parts: list[Any]
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    beside: Any = None


class Operation(msgspec.Struct, frozen=True):
    """One GraphQL request. `payload` is its JSON body, `parts_max` what it can cost at worst."""

    name: str
    payload: bytes
    decode: Callable[[bytes], Any]
    parts_max: int


class Ask(msgspec.Struct, frozen=True):
    """Queries for one document: its variables, the most parts it can cost, how its data reads, and the queries it
    answers by their position in the request.
    """

    document: "Document"
    variables: dict[str, Any]
    parts_max: int
    read: Callable[[Any], list[Found]]
    positions: tuple[int, ...]

    @property
    def operation(self) -> Operation:
        """What is sent."""
        return self.document.operation(self.variables, self.parts_max)

    @property
    def batch_key(self) -> "Document | None":
        """What queries must have in common to go out together; None for those that go alone."""
        return self.document if self.document.shares else None

    def merged(self, others: "Sequence[Ask]") -> "Ask":
        """One ask for the queries of this and others of the same batch key."""
        asks = [self, *others]
        parts = sum(ask.parts_max for ask in asks)
        positions = tuple(range(sum(len(ask.positions) for ask in asks)))
        several = self.document.several
        if several is not None:
            variables = {**self.variables, several: [each for ask in asks for each in ask.variables[several]]}
            return Ask(self.document, variables, parts, self.read, positions)
        numbered = {f"{key}{n}": value for n, ask in enumerate(asks) for key, value in ask.variables.items()}
        return Ask(self.document.aliased(len(asks)), numbered, parts, _read_aliases(self), positions)


class Lost(NamedTuple):
    """Stands for what the service nulled, and why."""

    message: str


Mend = Callable[[Any, list[model.GraphQLError]], Any]


class Document:
    """A GraphQL document and the decoder of its answers. Made at start, and once for every new projection.

    `mend` is handed data that has errors beside it: it puts Lost where something was nulled, or gives None where
    nothing is left. Queries of several callers can go out in one request where `several` names the variable that is a
    list of queries, or where `aliases` makes the document with so many of its root field.
    """

    def __init__(
        self,
        name: str,
        text: str,
        data: Any,
        *,
        mend: Mend | None = None,
        several: str | None = None,
        aliases: "Callable[[int], Document] | None" = None,
    ) -> None:
        self.name = name
        self.text = text
        self.several = several
        self.shares = several is not None or aliases is not None
        self._aliases = aliases
        self._aliased: dict[int, Document] = {}
        self._head = msgspec.json.encode({"operationName": name, "query": text})[:-1] + b',"variables":'
        answer = msgspec.defstruct(
            "Answer",
            [("data", data | None, None), ("errors", list[model.GraphQLError] | None, None)],
            gc=False,
        )
        decode = msgspec.json.Decoder(answer).decode
        self._decode = decode if mend is None else _mended(decode, mend)

    def operation(self, variables: dict[str, Any], parts_max: int) -> Operation:
        """The document with its variables."""
        return Operation(self.name, self._head + msgspec.json.encode(variables) + b"}", self._decode, parts_max)

    def aliased(self, number: int) -> "Document":
        """The document with so many of its root field, the variables of each numbered from 0."""
        known = self._aliased.get(number)
        if known is None:
            if self._aliases is None:
                raise LookupError(f"{self.name} has no aliases")
            known = self._aliased[number] = self._aliases(number)
        return known


def _mended(decode: Callable[[bytes], Any], mend: Mend) -> Callable[[bytes], Any]:
    """The decoder, for answers of which a part may be of no use."""

    def decoded(body: bytes) -> Any:
        answer = decode(body)
        if answer.errors and answer.data is not None:
            answer.data = mend(answer.data, answer.errors)
        return answer

    return decoded


def _read_aliases(ask: Ask) -> Callable[[Any], list[Found]]:
    """Each alias' value in the shape that the lone document's data has."""
    name, alone = ask.document.name, types.SimpleNamespace

    def read(data: dict[str, Any]) -> list[Found]:
        return [
            Found([], 0, value.message) if isinstance(value, Lost) else ask.read(alone(**{name: value}))[0]
            for value in data.values()
        ]

    return read
