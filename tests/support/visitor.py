"""A person at a browser without scripts, on the pages of a sandbox: follows redirects as far as they stay there."""

from typing import Any, NamedTuple

import aiohttp
import yarl

from proxy.sandbox import people
from support import html_forms


class Seen(NamedTuple):
    """Where the browser ended: a page of the sandbox, or an address elsewhere, which was not asked."""

    status: int
    page: str
    address: yarl.URL
    headers: Any


class Visitor:
    """Has cookies of its own. Use as a context manager."""

    def __init__(self, url: str) -> None:
        self.url = yarl.URL(url)
        self.jar = aiohttp.CookieJar(unsafe=True)  # addresses of this machine have cookies too
        self._session = aiohttp.ClientSession(cookie_jar=self.jar, headers={"Accept": "text/html, */*;q=0.8"})

    async def __aenter__(self) -> "Visitor":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def open(self, path: str | yarl.URL, **query: str) -> Seen:
        """Go there."""
        return await self._go("GET", self.url.join(yarl.URL(path)).extend_query(query))

    async def send(self, seen: Seen, **fields: str) -> Seen:
        """Fill in the first form of a page and send it."""
        form = html_forms.first_form(seen.page)
        return await self._go("POST", self.url.join(yarl.URL(form.action)), {**form.fields, **fields})

    async def fill(self, seen: Seen, action: str, fields: dict[str, str] | None = None, *, without: str = "") -> Seen:
        """Fill in the first form of a page that goes there, `without` a field, and send it."""
        forms = html_forms.all_forms(seen.page)
        form = next(one for one in forms if one.action.endswith(action))
        sent = {name: value for name, value in {**form.fields, **(fields or {})}.items() if name != without}
        return await self._go("POST", self.url.join(yarl.URL(form.action)), sent)

    async def post(self, path: str, **fields: str) -> Seen:
        """What no form of a page would send."""
        return await self._go("POST", self.url.join(yarl.URL(path)), fields)

    async def sign_in(self, seen: Seen, user: people.User = people.USERS[0], password: str = people.PASSWORD) -> Seen:
        """On the login page."""
        return await self.send(seen, email=user.email, password=password)

    async def _go(self, method: str, address: yarl.URL, fields: dict[str, str] | None = None) -> Seen:
        async with self._session.request(method, address, data=fields, allow_redirects=False) as response:
            page = await response.text()
            if response.status not in (302, 303):
                return Seen(response.status, page, address, response.headers)
            target = address.join(yarl.URL(response.headers["Location"], encoded=True))
            if target.origin() == self.url.origin():
                return await self._go("GET", target)
            return Seen(response.status, page, target, response.headers)
