"""Context of the resolvers during one request, which also counts the parts to bill; and views: catalog records in the
market of the request, with its country and currency.

Fields that a view does not have itself are read from its `record`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from aiodataloader import DataLoader
from graphql import GraphQLResolveInfo

from nexar_sandbox import applications, part_usage, user_directory
from nexar_sandbox.catalog import records, store
from nexar_sandbox.design import resources
from nexar_sandbox.design import services as design_services
from nexar_sandbox.design.resources import Record

# Values in one call, so that the URL does not become too long for a server.
BATCH_SIZE = 200
# Characters; no id has more, so a longer one is not looked up.
MAX_ID_LENGTH = 200


class Market(NamedTuple):
    """Country whose offers are shown (ISO 3166 alpha-2) and currency of converted prices (ISO 4217)."""

    country: str
    currency: str


def cache_id(*parts: object) -> str:
    """Return an opaque id that is the same for the same object."""
    return hashlib.blake2b(":".join(map(str, parts)).encode(), digest_size=12).hexdigest()


@dataclass(slots=True, eq=False)
class PartView:
    """A part in a market. Two views of one part are two part objects of a response, and billed twice."""

    record: records.Part
    market: Market


@dataclass(slots=True, eq=False)
class SellerView:
    record: records.SellerOffers
    part: PartView


@dataclass(slots=True, eq=False)
class OfferView:
    """One offer of a seller. `breaks` are the price breaks to show."""

    record: records.Offer
    seller: SellerView
    breaks: tuple[records.PriceBreak, ...]


class PriceView(NamedTuple):
    """A price break with its converted price; `key` identifies it in cache ids."""

    key: tuple[object, ...]
    quantity: int
    price: float
    currency: str
    converted_price: float
    converted_currency: str
    conversion_rate: float


@dataclass(slots=True, eq=False)
class SupPartMatch:
    reference: str | None
    hits: int
    parts: tuple[PartView, ...] = ()
    error: str | None = None


@dataclass(slots=True, eq=False)
class SupPartResult:
    part: PartView
    aka_mpn: str | None
    query: str


@dataclass(slots=True, eq=False)
class SupPartResultSet:
    hits: records.SearchHits
    page: tuple[SupPartResult, ...]
    query: str
    conditions: records.SearchConditions
    warnings: tuple[str, ...] = ()


class DesignLoaders:
    """Loaders of design data, which batch the lookups of many fields into one REST call.

    A DataLoader for each table and field batches lookups until no other task can run, and caches the results for the
    rest of the request; `clear` it after a mutation. `of` is the GraphQL type of the records.
    """

    def __init__(self, services: design_services.DesignClient) -> None:
        self._client = services
        self._loaders: dict[tuple[str, str], DataLoader[str, Any]] = {}

    async def one(self, of: str, id_: str) -> Record | None:
        if not 0 < len(id_) <= MAX_ID_LENGTH:
            return None
        record: Record | None = await self._load(of, "id", id_)
        return record

    async def where(self, of: str, field: str, value: str) -> list[Record]:
        if not 0 < len(value) <= MAX_ID_LENGTH:
            return []
        rows: list[Record] = await self._load(of, field, value)
        return rows

    async def all(self, of: str) -> list[Record]:
        rows: list[Record] = await self._load(of, "", "")
        return rows

    def clear(self) -> None:
        self._loaders.clear()

    async def _load(self, of: str, field: str, value: str) -> Any:
        resource = resources.RESOURCES[of]

        async def load(values: list[str]) -> list[Any]:
            return await self._client.get(resource, field, values)

        key = resource.table, field
        if key not in self._loaders:
            self._loaders[key] = DataLoader(load, max_batch_size=BATCH_SIZE)
        return await self._loaders[key].load(value)


@dataclass(slots=True)
class DesignSession:
    """Access to design data for one request with a user's token. `user_id` is the token's subject, `origin` the origin
    of the request URL."""

    services: design_services.DesignClient
    user_id: str
    origin: str
    loaders: DesignLoaders = field(init=False)

    def __post_init__(self) -> None:
        self.loaders = DesignLoaders(self.services)


# A path in the response: names and indices.
ResponsePath: TypeAlias = Sequence[str | int]


@dataclass(slots=True)
class ResolverContext:
    """Catalog, caller and services. `application` is None for introspection without a valid token, `user` (an id) for
    the token of an application. `started`: start of the sandbox, in seconds since 1970. `design` is set if the token
    allows design data."""

    catalog: store.Catalog
    application: applications.SandboxApplication | None
    user: str | None
    applications: applications.ApplicationRegistry
    user_directory: user_directory.UserDirectory
    part_usage: part_usage.PartUsage
    started: float
    bill_refused: bool
    design: DesignSession | None = None
    _billed: list[tuple[PartView, ResponsePath]] = field(default_factory=list)

    def bill(self, part: PartView, path: ResponsePath) -> None:
        """Record a part of a root query and its path in the response."""
        self._billed.append((part, path))

    def billed_parts(self, data: Any) -> int:
        """Return the number of part objects in `data` of the response. A part that is selected under two aliases
        counts once, one that an error has removed only with `bill_refused`."""
        return len({id(part) for part, path in self._billed if self.bill_refused or _is_present(data, path)})


def _is_present(data: Any, path: ResponsePath) -> bool:
    for key in path:
        if data is None:
            return False
        data = data[key]
    return data is not None


Info: TypeAlias = GraphQLResolveInfo[ResolverContext]
