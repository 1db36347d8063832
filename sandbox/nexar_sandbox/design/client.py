"""Client of the design services. Only the resolvers of the query service use it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import msgspec

from nexar_sandbox.design import records

R = TypeVar("R")
# An event stream has no total timeout.
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=5)


class DesignServiceError(Exception):
    """A service rejected a request; the message is for the client."""


class DesignClient:
    """`urls` are the base URLs of the services by name; the session sends the credential."""

    def __init__(self, session: aiohttp.ClientSession, urls: Mapping[str, str]) -> None:
        self._session, self.urls = session, urls

    async def all(self, service: str, table: str, kind: type[R]) -> list[R]:
        """Every record of a table."""
        rows: list[R] = await self._request("GET", f"{self.urls[service]}/{table}", list[kind])  # type: ignore[valid-type]
        return rows

    async def by_id(self, service: str, table: str, kind: type[R], ids: Sequence[str], key: str) -> list[R | None]:
        """For each id, its record or None."""
        rows: list[R | None] = await self._select(service, table, list[kind | None], key, ids)  # type: ignore[valid-type]
        return rows

    async def where(self, service: str, table: str, kind: type[R], field: str, values: Sequence[str]) -> list[list[R]]:
        """For each value, the records that have it in this field."""
        rows: list[list[R]] = await self._select(service, table, list[list[kind]], field, values)  # type: ignore[valid-type]
        return rows

    async def change(self, method: str, service: str, path: str, kind: type[R], content: object = None) -> R:
        """Send POST, PATCH or DELETE; return the resulting record. Raises DesignServiceError."""
        body = None if content is None else msgspec.json.encode(content)
        changed: R = await self._request(method, f"{self.urls[service]}{path}", kind, data=body)
        return changed

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[records.CommentEvent]]:
        """Comment events from now on; the stream is open when the block is entered."""
        async with self._session.get(f"{self.urls['collaboration']}/events", timeout=STREAM_TIMEOUT) as response:
            # The empty line says that the subscription has begun.
            await response.content.readline()
            yield _lines(response)

    async def _select(self, service: str, table: str, kind: Any, field: str, values: Sequence[str]) -> Any:
        params = [(field, value) for value in values]
        return await self._request("GET", f"{self.urls[service]}/{table}", kind, params=params)

    async def _request(self, method: str, url: str, kind: Any, **options: Any) -> Any:
        async with self._session.request(method, url, **options) as response:
            body = await response.read()
            if response.status >= 400:
                raise DesignServiceError(msgspec.json.decode(body, type=dict[str, str])["error"])
            return msgspec.json.decode(body, type=kind)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[records.CommentEvent]:
    async for line in response.content:
        yield msgspec.json.decode(line, type=records.CommentEvent)
