"""The IDE's page at a sandbox, as its scripts ask the server: with the cookies of a person's browser."""

from typing import Any

import aiohttp
import yarl

from proxy.sandbox import people
from support.sandbox_caller import Reply
from support.visitor import Seen, Visitor


class IdePage:
    """One browser. Use as a context manager."""

    def __init__(self, url: str) -> None:
        self.visitor, self.url = Visitor(url), yarl.URL(url)
        self._session = aiohttp.ClientSession(cookie_jar=self.visitor.jar)

    async def __aenter__(self) -> "IdePage":
        await self.visitor.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()
        await self.visitor.__aexit__(*error)

    async def sign_in(self, user: people.User = people.USERS[0], password: str = people.PASSWORD) -> Seen:
        """By the page's own link."""
        link = (await self.state())["links"]["sign_in"]
        return await self.visitor.sign_in(await self.visitor.open(link), user, password)

    async def state(self) -> Any:
        """Who has signed in, and with what."""
        async with self._session.get(self.url.with_path("/ide/session")) as response:
            assert response.status == 200
            return await response.json()

    async def token(self, csrf: str | None = None, **body: str) -> Reply:
        """A token, with the session's CSRF token unless another is given."""
        return await self._post("/ide/token", csrf, body)

    async def authorization(self, csrf: str | None = None, **body: str) -> Reply:
        """Where the browser has to be sent for a user's token."""
        return await self._post("/ide/authorization", csrf, body)

    async def raw(self, path: str, body: bytes) -> Reply:
        """Any body."""
        return await self._send(path, (await self.state())["csrf"], body)

    async def _post(self, path: str, csrf: str | None, body: dict[str, str]) -> Reply:
        return await self._send(path, csrf if csrf is not None else (await self.state())["csrf"], body)

    async def _send(self, path: str, csrf: str | None, body: Any) -> Reply:
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        headers = {"X-CSRF-Token": csrf or ""}
        async with self._session.post(self.url.with_path(path), headers=headers, **sent) as response:
            return Reply(response.status, await response.json(), response.headers, await response.read())
