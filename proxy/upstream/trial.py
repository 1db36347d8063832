"""Is a token taken? A question that costs no parts, because it returns none: the ids of all categories.

Asked by web/readiness.py after a refusal, when nobody else may ask: a balancer sends nothing to what is not ready.
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
