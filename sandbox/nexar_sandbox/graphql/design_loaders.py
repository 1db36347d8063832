"""Loaders of design data for the resolvers of one request, which batch the lookups of many fields into one REST call.

A DataLoader for each table and field batches lookups until no other task can run, and caches the results for the rest
of the request. `clear` it after a mutation.
"""

from dataclasses import dataclass, field
from typing import Any

from aiodataloader import DataLoader

from nexar_sandbox.design import records
from nexar_sandbox.design import services as design_services

# Values in one call, so that the URL does not become too long for a server.
BATCH_SIZE = 200
# Characters; no id has more, so a longer one is not looked up.
MAX_ID_LENGTH = 200


class DesignLoaders:
    """The loaders of one request. `of` is the GraphQL type of the records."""

    def __init__(self, services: design_services.DesignClient) -> None:
        self._client = services
        self._loaders: dict[tuple[records.RecordKind, str], DataLoader[str, Any]] = {}

    async def one(self, of: str, id_: str) -> records.Record | None:
        if not 0 < len(id_) <= MAX_ID_LENGTH:
            return None
        record: records.Record | None = await self._load(of, records.KINDS[of].key, id_)
        return record

    async def where(self, of: str, field: str, value: str) -> list[records.Record]:
        if not 0 < len(value) <= MAX_ID_LENGTH:
            return []
        rows: list[records.Record] = await self._load(of, field, value)
        return rows

    async def all(self, of: str) -> list[records.Record]:
        rows: list[records.Record] = await self._load(of, "", "")
        return rows

    def clear(self) -> None:
        self._loaders.clear()

    async def _load(self, of: str, field: str, value: str) -> Any:
        kind = records.KINDS[of]

        async def load(values: list[str]) -> list[Any]:
            return await self._client.get(kind, field, values)

        if (kind, field) not in self._loaders:
            self._loaders[kind, field] = DataLoader(load, max_batch_size=BATCH_SIZE)
        return await self._loaders[kind, field].load(value)


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
