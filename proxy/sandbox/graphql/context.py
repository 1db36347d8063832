"""What resolvers may use during one request, and the bill that they fill. Made anew by the query service
each time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphql import GraphQLResolveInfo

from proxy.sandbox import applications, part_usage, user_directory
from proxy.sandbox.catalog import store
from proxy.sandbox.graphql import design_session, views

# A path in the answer: names and positions.
Place: TypeAlias = Sequence[str | int]


@dataclass(slots=True)
class Context:
    """The catalog and who asks. `account` is None for a request that may see nothing but the schema, `user` (an id)
    where the token is the application's own. `started`: when the sandbox did, `now`: when the request came, in seconds
    since 1970. `design` is there where the token is good for design data."""

    catalog: store.Catalog
    account: applications.SandboxApplication | None
    user: str | None
    applications: applications.ApplicationRegistry
    user_directory: user_directory.UserDirectory
    part_usage: part_usage.PartUsage
    site_url: str
    started: float
    now: float
    design: design_session.Session | None = None
    _billed: list[tuple[views.PartView, Place]] = field(default_factory=list)

    def bill(self, part: views.PartView, place: Place) -> None:
        """Note a part of a root query and its place in the answer."""
        self._billed.append((part, place))

    def parts(self, data: Any) -> int:
        """How many part objects arrived in the answer's `data`. One that is selected twice under two names counts
        once, one that an error took out of the answer does not."""
        return len({id(part) for part, place in self._billed if _arrived(data, place)})


def _arrived(data: Any, place: Place) -> bool:
    for key in place:
        if data is None:
            return False
        data = data[key]
    return data is not None


Info: TypeAlias = GraphQLResolveInfo[Context]
