"""Endpoints of the v3 API as data: the web serves and describes them, comparisons name requests by them."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

PREFIXES = ("/v3", "/api/v3")
READ_METHODS = frozenset({"GET", "HEAD"})
Action = Literal["match", "search", "get_multi", "get"]


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of v3. `object` is the v3 object that it returns, `cost` its cost in parts, in words for
    documentation."""

    path: str
    object: str
    action: Action
    cost: str
    alias_of: str | None = None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of its paths, without prefix."""
        return re.compile(self.path.replace("{uid}", "([^/]+)") + "/?")

    @property
    def free(self) -> bool:
        """Whether requests never cost a part."""
        return self.cost == FREE


FREE = "nothing: the Nexar API lists them free of charge"
FOUND = "one part for each known uid"

ENDPOINTS = (
    Endpoint("/parts/match", "Part", "match", "the parts returned, partial matches of a single query among them"),
    Endpoint(
        "/parts/search",
        "Part",
        "search",
        "the parts returned, at most `limit`, by `mpn` all candidates; counts nothing",
    ),
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


def of(path: str) -> Endpoint | None:
    """Return the endpoint of a path without prefix; None where there is none."""
    return next((each for each in ENDPOINTS if each.pattern.fullmatch(path)), None)
