"""GraphQL operations as values: a fixed document, and variables that carry all text from the client.

Planned by this package, executed by upstream. Documents hold names from mapping files only (decision 2).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import model


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


class FieldError(NamedTuple):
    """Replaces data that the upstream set to null, with the reason (a GraphQL field error)."""

    message: str


ErrorMarker = Callable[[Any, list[model.GraphQLError]], Any]


class Document:
    """GraphQL document with the decoder of its responses.

    `mark_errors` gets the data and the errors of a partial response: it puts FieldError in place of nulled data, or
    returns None if no data is left.
    """

    def __init__(self, name: str, text: str, data: Any, mark_errors: ErrorMarker | None = None) -> None:
        self.name = name
        self.text = text
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


def _marking_errors(decode: Callable[[bytes], Any], mark_errors: ErrorMarker) -> Callable[[bytes], Any]:
    """Return a decoder that marks the errors in responses with both data and errors."""

    def decoded(body: bytes) -> Any:
        envelope = decode(body)
        # Errors without data are the business of upstream/classify.py.
        if envelope.errors and envelope.data is not None:
            envelope.data = mark_errors(envelope.data, envelope.errors)
        return envelope

    return decoded
