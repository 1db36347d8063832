"""Asks the design services. The query service's resolvers have it, and nobody else."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import msgspec

from proxy.sandbox.design import records

R = TypeVar("R")
# A stream of events has no end.
ENDLESS = aiohttp.ClientTimeout(total=None, connect=5)


class RefusedError(Exception):
    """A service refuses; the message is for whoever asked."""


class Client:
    """`urls` are the addresses of the services by name; the session carries the credential."""

    def __init__(self, session: aiohttp.ClientSession, urls: Mapping[str, str]) -> None:
        self._session, self.urls = session, urls

    async def all(self, service: str, table: str, kind: type[R]) -> list[R]:
        """Every record of a table."""
        found: list[R] = await self._asked("GET", f"{self.urls[service]}/{table}", list[kind])  # type: ignore[valid-type]
        return found

    async def by_id(self, service: str, table: str, kind: type[R], ids: Sequence[str], key: str) -> list[R | None]:
        """For each id its record or None."""
        found: list[R | None] = await self._named(service, table, list[kind | None], key, ids)  # type: ignore[valid-type]
        return found

    async def where(self, service: str, table: str, kind: type[R], field: str, values: Sequence[str]) -> list[list[R]]:
        """For each value the records that have it in this field."""
        found: list[list[R]] = await self._named(service, table, list[list[kind]], field, values)  # type: ignore[valid-type]
        return found

    async def change(self, method: str, service: str, path: str, kind: type[R], draft: object = None) -> R:
        """POST, PATCH or DELETE; what it gives back. Raises RefusedError."""
        body = None if draft is None else msgspec.json.encode(draft)
        made: R = await self._asked(method, f"{self.urls[service]}{path}", kind, data=body)
        return made

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[records.Event]]:
        """What happens to comments, from the moment that the block is entered."""
        async with self._session.get(f"{self.urls['collaboration']}/events", timeout=ENDLESS) as response:
            await response.content.readline()
            yield _lines(response)

    async def _named(self, service: str, table: str, kind: Any, field: str, values: Sequence[str]) -> Any:
        params = [(field, value) for value in values]
        return await self._asked("GET", f"{self.urls[service]}/{table}", kind, params=params)

    async def _asked(self, method: str, url: str, kind: Any, **options: Any) -> Any:
        async with self._session.request(method, url, **options) as response:
            body = await response.read()
            if response.status >= 400:
                raise RefusedError(msgspec.json.decode(body, type=dict[str, str])["error"])
            return msgspec.json.decode(body, type=kind)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[records.Event]:
    async for line in response.content:
        yield msgspec.json.decode(line, type=records.Event)
