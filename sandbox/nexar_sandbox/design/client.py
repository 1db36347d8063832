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

    async def get(self, kind: records.RecordKind, field: str, values: Sequence[str]) -> list[Any]:
        """Return for each value the records that have it in this field: one or None if it is the key, else a list.
        Without a field, return one list of every record."""
        record: Any = kind.record
        url = f"{self.urls[kind.service]}/{kind.table}"
        if not field:
            return [await self._request("GET", url, list[record])]
        of: Any = list[record | None] if field == kind.key else list[list[record]]
        params = [(field, value) for value in values]
        found: list[Any] = await self._request("GET", url, of, params=params)
        return found

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

    async def _request(self, method: str, url: str, of: Any, **options: Any) -> Any:
        async with self._session.request(method, url, **options) as response:
            body = await response.read()
            if response.status >= 400:
                raise DesignServiceError(msgspec.json.decode(body, type=dict[str, str])["error"])
            return msgspec.json.decode(body, type=of)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[records.Record]:
    async for line in response.content:
        yield msgspec.json.decode(line, type=records.CommentEvent)
