"""Context of the resolvers during one request, which also counts the parts to bill. Created for each request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphql import GraphQLResolveInfo

from nexar_sandbox import applications, behavior, part_usage, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.graphql import design_loaders, views

# A path in the response: names and indices.
ResponsePath: TypeAlias = Sequence[str | int]


@dataclass(slots=True)
class ResolverContext:
    """Catalog, caller and services. `application` is None for introspection without a valid token, `user` (an id) for
    the token of an application. `started`: start of the sandbox, `now`: arrival of the request, in seconds since 1970.
    `design` is set if the token allows design data."""

    catalog: store.Catalog
    application: applications.SandboxApplication | None
    user: str | None
    applications: applications.ApplicationRegistry
    user_directory: user_directory.UserDirectory
    part_usage: part_usage.PartUsage
    site_url: str
    started: float
    now: float
    behavior: behavior.Behavior
    design: design_loaders.DesignSession | None = None
    _billed: list[tuple[views.PartView, ResponsePath]] = field(default_factory=list)

    def bill(self, part: views.PartView, path: ResponsePath) -> None:
        """Record a part of a root query and its path in the response."""
        self._billed.append((part, path))

    def billed_parts(self, data: Any) -> int:
        """Return the number of part objects in `data` of the response. A part that is selected under two aliases
        counts once, one that an error has removed does not count."""
        return len({id(part) for part, path in self._billed if _is_present(data, path)})


def _is_present(data: Any, path: ResponsePath) -> bool:
    for key in path:
        if data is None:
            return False
        data = data[key]
    return data is not None


Info: TypeAlias = GraphQLResolveInfo[ResolverContext]
