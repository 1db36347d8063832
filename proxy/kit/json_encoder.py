"""JSON encoder for results: writes into a buffer that is reused."""

from typing import Any

import msgspec

_encode_into = msgspec.json.Encoder().encode_into


class JsonEncoder:
    """Encodes values of similar size in one thread.

    `msgspec.json.encode` starts with half a kilobyte and lets it grow. In a heap full of cache entries each of these
    steps moves to other memory, which takes longer than the encoding itself.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def encode(self, value: Any) -> bytes:
        """Return a value as compact JSON."""
        _encode_into(value, self._buffer)
        return bytes(self._buffer)
