"""JSON as it goes to clients: whole numbers of any size, and pieces that are JSON already, taken over as they are."""

import json
from typing import Any

import msgspec
import orjson


class Encoded:
    """JSON that is ready: it is copied, not read."""

    __slots__ = ("json",)

    def __init__(self, json: bytes) -> None:
        self.json = json


def encode(value: Any) -> bytes:
    """Compact."""
    try:
        return orjson.dumps(value, default=_fragment)
    except TypeError:  # a whole number beyond 64 bits
        return msgspec.json.encode(value, enc_hook=_raw)


def pretty(value: Any) -> bytes:
    """Keys in alphabetical order, four spaces, everything beyond ASCII escaped."""
    return json.dumps(value, sort_keys=True, indent=4, default=_read).encode()


def _fragment(piece: Encoded) -> orjson.Fragment:
    return orjson.Fragment(piece.json)


def _raw(piece: Encoded) -> msgspec.Raw:
    return msgspec.Raw(piece.json)


def _read(piece: Encoded) -> Any:
    return json.loads(piece.json)
