"""A browser without scripts, for the sandbox's pages: has cookies, and follows redirects within the sandbox."""

from typing import Any, NamedTuple

import aiohttp
import yarl
from support import html_forms

import nexar_sandbox


class PageResult(NamedTuple):
    """The last page of a navigation, or the redirect target outside the sandbox, which is not requested."""

    status: int
    page: str
    address: yarl.URL
    headers: Any


class PageBrowser:
    """One browser with its own cookies. Use as a context manager."""

    def __init__(self, url: str) -> None:
        self.url = yarl.URL(url)
        self.jar = aiohttp.CookieJar(unsafe=True)  # addresses of this machine have cookies too
        self._session = aiohttp.ClientSession(cookie_jar=self.jar, headers={"Accept": "text/html, */*;q=0.8"})

    async def __aenter__(self) -> "PageBrowser":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def open(self, path: str | yarl.URL, **query: str) -> PageResult:
        """Open a page."""
        return await self._go("GET", self.url.join(yarl.URL(path)).extend_query(query))

    async def send(self, seen: PageResult, **fields: str) -> PageResult:
        """Fill in the first form of a page and send it."""
        form = html_forms.first_form(seen.page)
        return await self._go("POST", self.url.join(yarl.URL(form.action)), {**form.fields, **fields})

    async def fill(
        self, seen: PageResult, action: str, fields: dict[str, str] | None = None, *, without: str = ""
    ) -> PageResult:
        """Fill in the first form of a page that goes there, `without` a field, and send it."""
        forms = html_forms.all_forms(seen.page)
        form = next(one for one in forms if one.action.endswith(action))
        sent = {name: value for name, value in {**form.fields, **(fields or {})}.items() if name != without}
        return await self._go("POST", self.url.join(yarl.URL(form.action)), sent)

    async def post(self, path: str, headers: dict[str, str] | None = None, /, **fields: str) -> PageResult:
        """Send a form that is on no page."""
        return await self._go("POST", self.url.join(yarl.URL(path)), fields, headers)

    async def sign_in(
        self,
        seen: PageResult,
        user: nexar_sandbox.SandboxUser = nexar_sandbox.DEFAULT_USERS[0],
        password: str = nexar_sandbox.DEFAULT_PASSWORD,
    ) -> PageResult:
        """Fill in and send the login form."""
        return await self.send(seen, email=user.email, password=password)

    async def _go(
        self, method: str, address: yarl.URL, fields: dict[str, str] | None = None, headers: Any = None
    ) -> PageResult:
        sent = {"data": fields, "headers": headers}
        async with self._session.request(method, address, allow_redirects=False, **sent) as response:
            page = await response.text()
            if response.status not in (302, 303):
                return PageResult(response.status, page, address, response.headers)
            target = address.join(yarl.URL(response.headers["Location"], encoded=True))
            if target.origin() == self.url.origin():
                return await self._go("GET", target)
            return PageResult(response.status, page, target, response.headers)
