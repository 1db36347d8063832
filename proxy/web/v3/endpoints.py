"""v3's endpoints as data: what routes.py serves, and what the documentation and the OpenAPI description are made of."""

from dataclasses import dataclass
from typing import Literal

PREFIXES = ("/v3", "/api/v3")
Action = Literal["match", "search", "get_multi", "get"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path. `object` is the v3 object it answers with, `cost` what it costs in parts, in words."""

    path: str
    object: str
    action: Action
    cost: str
    alias_of: str | None = None


FREE = "nothing: the list is kept here, and the service gives it free of charge"
FOUND = "one part for each uid that the service knows"

ENDPOINTS = (
    Endpoint("/parts/match", "Part", "match", "the parts returned, partial matches of a single query among them"),
    Endpoint("/parts/search", "Part", "search", "the parts returned, at most `limit`; facets, stats and hits nothing"),
    Endpoint("/parts/get_multi", "Part", "get_multi", FOUND),
    Endpoint("/parts/{uid}", "Part", "get", FOUND),
    *(
        Endpoint(f"/{path}/{action}", name, action, FREE)
        for path, name in (("brands", "Brand"), ("categories", "Category"), ("sellers", "Seller"))
        for action in ("search", "get_multi")
    ),
    Endpoint("/brands/{uid}", "Brand", "get", FREE),
    Endpoint("/categories/{uid}", "Category", "get", FREE),
    Endpoint("/sellers/{uid}", "Seller", "get", FREE),
    Endpoint("/seller/{uid}", "Seller", "get", FREE, alias_of="/sellers/{uid}"),  # one client's slip, contract §1
)
