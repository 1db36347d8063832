"""GraphQL operations as values: a fixed document, and variables that carry all text from the client.

Planned by this package, executed by upstream. Documents hold names from mapping files only (decision 2).
"""

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.kit.slices import SLICE_BYTES, Slices


class OperationResult(msgspec.Struct, frozen=True):
    """Result of one query in an operation: part records, total hits, its own error.

    `records` are the parts as JSON, as the upstream sent them: pieces of its response, which lives as long as they do.
    `parts` is empty until they are decoded.
    `alternate_mpns` are the alternate MPNs that matched; `result_set` is the result set if more of it is read;
    `failure` is the error of an operation that was not executed, or failed as a whole; `refusal` that of one that the
    upstream refused; `reported` are the errors beside the data of a partial response.
    """

    parts: list[Any]
    hits: int
    error: str | None = None
    alternate_mpns: list[str | None] | None = None
    result_set: Any = None
    failure: errors.BridgeError | None = None
    records: list[bytes] = []
    refusal: errors.QueryRefused | None = None
    reported: Sequence[model.GraphQLError] = ()

    def candidates(self) -> Iterator[tuple[Any, bytes, str | None]]:
        """Yield each part with its record and the alternate MPN that the query matched, None if it matched the MPN
        itself."""
        return zip(self.parts, self.records, self.alternate_mpns or [None] * len(self.parts), strict=True)


COMPLETE = "(complete)"  # fact of a page: no error is the reason of a null in it
AS_SENT = "(as sent)"  # fact of a page: it is the upstream's own, from which nothing was left out
MATCHES = "(matches)"  # fact of a page: all of its parts have the number that was asked for


class QueryResult(msgspec.Struct, frozen=True):
    """Result of one query of a request: parts, total hits, an error message; `failure` and `records` as in
    OperationResult, the `details` of a search. `unmatched` is how many parts were left out of it, `facts` what is known
    of its page."""

    parts: list[Any]
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    details: Any = None
    records: Sequence[bytes] = ()
    unmatched: int = 0
    facts: frozenset[str] = frozenset()


class EncodedOperation(msgspec.Struct, frozen=True):
    """Encoded GraphQL request. `payload` is its JSON body; `parts_max` is the most parts that it can cost."""

    name: str
    payload: bytes
    decode: Callable[[bytes], Any]
    parts_max: int


class PartialData(NamedTuple):
    """Data of a response that has errors, too."""

    data: Any
    reported: Sequence[model.GraphQLError]


class PartialResponse(errors.ServerError):
    """Response with errors beside its data, for a caller that needs all of it."""

    status = 502


class PlannedOperation(msgspec.Struct, frozen=True):
    """Document with variables: the most parts that it can cost, the reader of its data, the positions in the request of
    the queries that it resolves, and the decoder of a part, which selects the fields that its caller needs.
    `is_free`: the upstream executes it without parts left, too."""

    document: "Document"
    variables: dict[str, Any]
    parts_max: int
    read_data: Callable[[Any], list[OperationResult]]
    positions: tuple[int, ...]
    decode: Callable[[bytes], Any] | None = None
    is_free: bool = False

    @property
    def operation(self) -> EncodedOperation:
        """Encoded request to send."""
        return self.document.operation(self.variables, self.parts_max)

    @property
    def batch_key(self) -> "Document | None":
        """Equal for operations that can be merged into one request; None for those that cannot."""
        return self.document if self.document.batchable else None

    def read(self, data: Any) -> list[OperationResult]:
        """Return the result of each query in the data of a response, which may be partial."""
        if not isinstance(data, PartialData):
            return self.read_data(data)
        return [msgspec.structs.replace(each, reported=data.reported) for each in self.read_data(data.data)]

    def merged(self, others: "Sequence[PlannedOperation]") -> "PlannedOperation":
        """Return one operation for the queries of this and of others with the same batch key."""
        operations = [self, *others]
        document = self.document.merged(len(operations))
        parts = sum(each.parts_max for each in operations)
        positions = tuple(range(sum(len(each.positions) for each in operations)))
        list_variable = self.document.list_variable
        if list_variable is not None:
            values = [value for each in operations for value in each.variables[list_variable]]
            # The other variables are equal: country and currency are those of the application, which the key contains.
            return PlannedOperation(
                document, {**self.variables, list_variable: values}, parts, self.read_data, positions
            )
        # Each copy of the root field has variables of its own, also where they are equal: one text for all merges.
        numbered = {f"{key}{n}": value for n, each in enumerate(operations) for key, value in each.variables.items()}
        return PlannedOperation(document, numbered, parts, _read_aliases(self), positions)

    def decoded(self, results: list[OperationResult]) -> Slices[list[OperationResult]]:
        """Return results with their parts, in slices. Raises UpstreamUnreadable.

        To be called by each caller for its own results, just before it translates them: records that are decoded long
        before have left the processor's caches by then, and translating them takes half as long again.
        """
        decoded: list[OperationResult] = []
        size = 0
        try:
            for each in results:
                if size > SLICE_BYTES:
                    size = 0
                    yield
                parts = [] if self.decode is None else [*map(self.decode, each.records)]
                decoded.append(msgspec.structs.replace(each, parts=parts))
                size += sum(map(len, each.records))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise errors.UpstreamUnreadable("the upstream sent parts of another form", may_be_billed=True) from error
        return decoded


def join_records(records: Sequence[bytes]) -> bytes:
    """Return a JSON list of records."""
    return b"[%b]" % b",".join(records)


class FieldError(NamedTuple):
    """Replaces data that the upstream set to null, with the reason (a GraphQL field error)."""

    message: str


ErrorMarker = Callable[[Any, list[model.GraphQLError]], Any]


class Document:
    """GraphQL document with the decoder of its responses. Made at start, and once for every new projection.

    `mark_errors` gets the data and the errors of a partial response: it puts FieldError in place of nulled data, or
    returns None if no data is left. Queries of several callers can be batched if `list_variable` names the variable
    that is a list of queries, or if `merging` makes the document with several copies of its root field.
    """

    def __init__(
        self,
        name: str,
        text: str,
        data: Any,
        *,
        mark_errors: ErrorMarker | None = None,
        list_variable: str | None = None,
        merging: "Callable[[int], Document] | None" = None,
    ) -> None:
        self.name = name
        self.text = text
        self.list_variable = list_variable
        self.batchable = list_variable is not None or merging is not None
        self._merging = merging
        self._merged: dict[int, Document] = {}
        # Encoded once: a document is long, the variables of a request are short.
        self._head = msgspec.json.encode({"operationName": name, "query": text})[:-1] + b',"variables":'
        envelope = msgspec.defstruct(
            "Envelope",
            [("data", data | None, None), ("errors", list[model.GraphQLError] | None, None)],
            gc=False,
        )
        decode = msgspec.json.Decoder(envelope).decode
        self._decode = decode if mark_errors is None else _marking_errors(decode, mark_errors)

    def operation(self, variables: dict[str, Any], parts_max: int) -> EncodedOperation:
        """Encode the document with its variables."""
        return EncodedOperation(self.name, self._head + msgspec.json.encode(variables) + b"}", self._decode, parts_max)

    def merged(self, number: int) -> "Document":
        """Return the document of `number` merged operations: this one with a longer list of queries, or one with so
        many copies of its root field, and the variables of each numbered from 0. Cached."""
        if self._merging is None:
            return self
        document = self._merged.get(number)
        if document is None:
            document = self._merged[number] = self._merging(number)
        return document


def _marking_errors(decode: Callable[[bytes], Any], mark_errors: ErrorMarker) -> Callable[[bytes], Any]:
    """Return a decoder that marks the errors in responses with both data and errors."""

    def decoded(body: bytes) -> Any:
        envelope = decode(body)
        # Errors without data are the business of upstream/classify.py.
        if envelope.errors and envelope.data is not None:
            envelope.data = mark_errors(envelope.data, envelope.errors)
        return envelope

    return decoded


def _read_aliases(operation: PlannedOperation) -> Callable[[Any], list[OperationResult]]:
    """Return the reader of a document with aliases: each value is read like the data of the document without them."""
    name, alone, read_one = operation.document.name, types.SimpleNamespace, operation.read_data

    def read(data: dict[str, Any]) -> list[OperationResult]:
        return [
            OperationResult([], 0, value.message)
            if isinstance(value, FieldError)
            else read_one(alone(**{name: value}))[0]
            for value in data.values()
        ]

    return read
