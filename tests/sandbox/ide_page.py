"""Requests of the IDE page's scripts to the sandbox, with the cookies of a browser."""

from typing import Any

import aiohttp
import yarl
from sandbox.page_browser import PageBrowser, PageResult
from support.sandbox_client import JsonResponse

import nexar_sandbox


class IdePageClient:
    """One browser. Use as a context manager."""

    def __init__(self, url: str) -> None:
        self.visitor, self.url = PageBrowser(url), yarl.URL(url)
        self._session = aiohttp.ClientSession(cookie_jar=self.visitor.jar)

    async def __aenter__(self) -> "IdePageClient":
        await self.visitor.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()
        await self.visitor.__aexit__(*error)

    async def sign_in(
        self,
        user: nexar_sandbox.SandboxUser = nexar_sandbox.DEFAULT_USERS[0],
        password: str = nexar_sandbox.DEFAULT_PASSWORD,
    ) -> PageResult:
        """Sign in by the link of the page."""
        link = (await self.state())["links"]["sign_in"]
        return await self.visitor.sign_in(await self.visitor.open(link), user, password)

    async def state(self) -> Any:
        """The session: user, organization, application and CSRF token."""
        async with self._session.get(self.url.with_path("/ide/session")) as response:
            assert response.status == 200
            return await response.json()

    async def token(self, csrf: str | None = None) -> JsonResponse:
        """Request a token, with the session's CSRF token unless another is given."""
        headers = {"X-CSRF-Token": (await self.state())["csrf"] if csrf is None else csrf}
        async with self._session.post(self.url.with_path("/ide/token"), headers=headers) as response:
            return JsonResponse(response.status, await response.json(), response.headers, await response.read())
