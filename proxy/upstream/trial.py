"""Operation that shows whether the service accepts an access token, at no parts: it returns the ids of all categories.

Sent by the readiness check after a refused token: a balancer sends no requests to a service that is not ready, so that
no request would try the new token.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import orjson

from proxy import model


class _Answer(msgspec.Struct, frozen=True):
    data: dict[str, msgspec.Raw] | None = None
    errors: list[model.GraphQLError] | None = None


@dataclass(frozen=True, slots=True)
class _Operation:
    name: str = "trial"
    payload: bytes = orjson.dumps({"operationName": "trial", "query": "query trial { supCategories { id } }"})
    decode: Callable[[bytes], _Answer] = msgspec.json.Decoder(_Answer).decode


TRIAL = _Operation()
