"""A log with requests of every kind, arguments of a comparison, and access to its result."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from support.comparison_server import request_from_target

CompareRequests = Callable[..., Awaitable[dict[str, Any]]]
KEY = "EXAMPLE_KEY"
REQUESTS = tuple(
    request_from_target(target)
    for target in Path(__file__).with_name("requests.txt").read_text(encoding="utf-8").splitlines()
)
# Without show[], hide[] and slice[], which remove the fields that identify elements.
WHOLE = tuple(
    request for request in REQUESTS if not {"show[]", "hide[]", "slice[offers]"} & {name for name, _ in request.query}
)


def reported_differences(result: dict[str, Any]) -> set[tuple[str, str, bool]]:
    """The last field, the cause, and whether it counts, of all that differs."""
    return {(last_field(group["path"]), group["cause"], group["counts"]) for group in result["groups"]}


def last_field(path: str) -> str:
    """`prices` of `…offers[*].prices.USD[*]`, `offers[*]` of a whole offer."""
    return "prices" if ".prices." in path else path.rpartition(".")[2]
