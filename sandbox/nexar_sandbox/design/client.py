"""Client of the design services. Only the resolvers of the query service use it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from nexar_sandbox.design import records

# An event stream has no total timeout.
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=5)


class DesignServiceError(Exception):
    """A service rejected a request; the message is for the client."""


class DesignClient:
    """`urls` are the base URLs of the services by name; the session sends the credential."""

    def __init__(self, session: aiohttp.ClientSession, urls: Mapping[str, str]) -> None:
        self._session, self.urls = session, urls

    async def all(self, kind: records.RecordKind) -> list[records.Record]:
        """Every record of a table."""
        rows: list[records.Record] = await self._get(kind, list[kind.record])  # type: ignore[name-defined]
        return rows

    async def by_id(self, kind: records.RecordKind, ids: Sequence[str]) -> list[records.Record | None]:
        """For each id, its record or None."""
        of: Any = list[kind.record | None]  # type: ignore[name-defined]
        rows: list[records.Record | None] = await self._get(kind, of, kind.key, ids)
        return rows

    async def where(self, kind: records.RecordKind, field: str, values: Sequence[str]) -> list[list[records.Record]]:
        """For each value, the records that have it in this field."""
        of: Any = list[list[kind.record]]  # type: ignore[name-defined]
        rows: list[list[records.Record]] = await self._get(kind, of, field, values)
        return rows

    async def change(self, method: str, service: str, path: str, of: Any, content: object) -> records.Record:
        """Send POST, PATCH or DELETE; return the resulting record. Raises DesignServiceError."""
        body = msgspec.json.encode(content)
        changed: records.Record = await self._request(method, f"{self.urls[service]}{path}", of, data=body)
        return changed

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[records.Record]]:
        """Comment events from now on; the stream is open when the block is entered."""
        async with self._session.get(f"{self.urls['collaboration']}/events", timeout=STREAM_TIMEOUT) as response:
            # The empty line says that the subscription has begun.
            await response.content.readline()
            yield _lines(response)

    async def _get(self, kind: records.RecordKind, of: Any, field: str = "", values: Sequence[str] = ()) -> Any:
        params = [(field, value) for value in values]
        return await self._request("GET", f"{self.urls[kind.service]}/{kind.table}", of, params=params)

    async def _request(self, method: str, url: str, of: Any, **options: Any) -> Any:
        async with self._session.request(method, url, **options) as response:
            body = await response.read()
            if response.status >= 400:
                raise DesignServiceError(msgspec.json.decode(body, type=dict[str, str])["error"])
            return msgspec.json.decode(body, type=of)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[records.Record]:
    async for line in response.content:
        yield msgspec.json.decode(line, type=records.CommentEvent)
