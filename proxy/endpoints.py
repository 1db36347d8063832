"""v3's endpoints as data: what the web serves and describes, and what a comparison knows a call by."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

PREFIXES = ("/v3", "/api/v3")
Action = Literal["match", "search", "get_multi", "get"]


@dataclass(frozen=True)
class Endpoint:
    """One path. `object` is the v3 object it answers with, `cost` what it costs in parts, in words."""

    path: str
    object: str
    action: Action
    cost: str
    alias_of: str | None = None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Its paths, without prefix."""
        return re.compile(self.path.replace("{uid}", "([^/]+)") + "/?")

    @property
    def free(self) -> bool:
        """Whether it never costs a part."""
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
    """The endpoint that a path without prefix leads to."""
    return next((each for each in ENDPOINTS if each.pattern.fullmatch(path)), None)
