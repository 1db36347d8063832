"""/parts/match: the reply (contract v3-rest.md §3.6, §4)."""

from typing import Any

from proxy import model
from proxy.gateway.cache.entries import Answer
from proxy.kit.encoding import RawJson
from proxy.planning import match_queries


def reply(raws: list[Any], request: model.PartsMatchRequest, answers: list[Answer], msec: int) -> dict[str, Any]:
    """A PartsMatchResponse; an answer for every query, in order."""
    return {
        "__class__": "PartsMatchResponse",
        "msec": msec,
        "request": {
            "__class__": "PartsMatchRequest",
            "queries": [_echo(raw) for raw in raws],
            "exact_only": request.exact_only,
        },
        "results": [
            {
                "__class__": "PartsMatchResult",
                "items": RawJson(answer.items),
                "hits": answer.hits,
                "reference": query.reference,
                "error": answer.error,
            }
            for query, answer in zip(request.queries, answers, strict=True)
        ],
    }


def _echo(raw: Any) -> dict[str, Any]:
    """The nine keys as they were sent, defaults where they were not."""
    return {
        "__class__": "PartsMatchQuery",
        **match_queries.DEFAULTS,
        **(match_queries.non_null(raw) if isinstance(raw, dict) else {}),
    }
