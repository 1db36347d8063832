"""JSON encoding of responses: integers of any size, and values that are encoded already."""

import json
from typing import Any

import msgspec
import orjson


class RawJson:
    """Encoded JSON, copied into the output without decoding."""

    __slots__ = ("json",)

    def __init__(self, json: bytes) -> None:
        self.json = json


def encode(value: Any) -> bytes:
    """Encode without white space."""
    try:
        return orjson.dumps(value, default=_fragment)
    except TypeError:  # orjson refuses integers beyond 64 bits
        return msgspec.json.encode(value, enc_hook=_raw)


def pretty(value: Any) -> bytes:
    """Encode with sorted keys, an indent of 4 spaces, and non-ASCII characters escaped."""
    return json.dumps(value, sort_keys=True, indent=4, default=_decode).encode()


def _fragment(value: RawJson) -> orjson.Fragment:
    return orjson.Fragment(value.json)


def _raw(value: RawJson) -> msgspec.Raw:
    return msgspec.Raw(value.json)


def _decode(value: RawJson) -> Any:
    return json.loads(value.json)
