"""Arguments of a comparison of generated requests, and access to its result."""

from collections.abc import Awaitable, Callable
from typing import Any

from proxy.traffic.v3_request import V3Request

GenerateRequests = Callable[..., Awaitable[list[V3Request]]]
CompareRequests = Callable[..., Awaitable[dict[str, Any]]]


def reported_differences(result: dict[str, Any]) -> set[tuple[str, str, bool]]:
    """The last field, the cause, and whether it counts, of all that differs."""
    return {(last_field(group["path"]), group["cause"], group["counts"]) for group in result["groups"]}


def last_field(path: str) -> str:
    """`prices` of `…offers[*].prices.USD[*]`, `offers[*]` of a whole offer."""
    return "prices" if ".prices." in path else path.rpartition(".")[2]
