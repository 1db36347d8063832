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


def decoder(data: Any, is_lost: Callable[[Any], bool] | None = None) -> Callable[[bytes], Any]:
    """Return the decoder of responses with data of a type. `is_lost` says whether errors beside the data leave nothing
    of it: then they count as errors without data."""
    envelope = msgspec.defstruct(
        "Envelope", [("data", data | None, None), ("errors", list[model.GraphQLError] | None, None)], gc=False
    )
    decode_envelope = msgspec.json.Decoder(envelope).decode

    def decode(body: bytes) -> Any:
        envelope: Any = decode_envelope(body)
        if envelope.errors and envelope.data is not None:
            has_data = is_lost is None or not is_lost(envelope.data)
            envelope.data = PartialData(envelope.data, envelope.errors) if has_data else None
        return envelope

    return decode


class Document:
    """GraphQL document with the decoder of its responses."""

    def __init__(self, name: str, text: str, data: Any, is_lost: Callable[[Any], bool] | None = None) -> None:
        self.name = name
        self.text = text
        # Encoded once: a document is long, the variables of a request are short.
        self._head = msgspec.json.encode({"operationName": name, "query": text})[:-1] + b',"variables":'
        self._decode = decoder(data, is_lost)

    def operation(self, variables: dict[str, Any], parts_max: int) -> EncodedOperation:
        """Encode the document with its variables."""
        return EncodedOperation(self.name, self._head + msgspec.json.encode(variables) + b"}", self._decode, parts_max)
