"""Who asks for design data, and with what: one for each request that a user's token came with."""

from dataclasses import dataclass, field

from proxy.sandbox.design import client
from proxy.sandbox.graphql import lookups as looking


@dataclass(slots=True)
class Session:
    """`user_id` is the token's subject, `origin` the address that the request came to."""

    services: client.DesignClient
    user_id: str
    origin: str
    lookups: looking.Lookups = field(init=False)

    def __post_init__(self) -> None:
        self.lookups = looking.Lookups(self.services)
