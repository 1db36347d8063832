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


class Document:
    """GraphQL document with the decoder of its responses. `is_lost` says whether errors beside the data of a response
    leave nothing of it: then they count as errors without data."""

    def __init__(self, name: str, text: str, data: Any, is_lost: Callable[[Any], bool] | None = None) -> None:
        self.name = name
        self.text = text
        # Encoded once: a document is long, the variables of a request are short.
        self._head = msgspec.json.encode({"operationName": name, "query": text})[:-1] + b',"variables":'
        envelope = msgspec.defstruct(
            "Envelope",
            [("data", data | None, None), ("errors", list[model.GraphQLError] | None, None)],
            gc=False,
        )
        self._envelope = msgspec.json.Decoder(envelope).decode
        self._is_lost = is_lost

    def operation(self, variables: dict[str, Any], parts_max: int) -> EncodedOperation:
        """Encode the document with its variables."""
        return EncodedOperation(self.name, self._head + msgspec.json.encode(variables) + b"}", self._decode, parts_max)

    def _decode(self, body: bytes) -> Any:
        envelope: Any = self._envelope(body)
        if envelope.errors and envelope.data is not None:
            is_lost = self._is_lost is not None and self._is_lost(envelope.data)
            envelope.data = None if is_lost else PartialData(envelope.data, envelope.errors)
        return envelope
