"""Documents that are the caller's own: design data, the organization and mutations. They are sent as they are, with the
caller's own access token, unmetered, and nothing of them is kept."""

import aiohttp

from proxy import errors
from proxy.upstream import classify, http_post


class PassingOn:
    """Passes requests on to the GraphQL service at `url`."""

    def __init__(self, session: aiohttp.ClientSession, url: str, max_bytes: int) -> None:
        self._session = session
        self._url = url
        self._max_bytes = max_bytes

    async def send(self, body: bytes, authorization: str | None, header: str) -> http_post.HttpResponse:
        """Send a request with the value of the caller's `header`. Raises BadRequest without one, and the errors of
        http_post."""
        if not authorization:
            raise errors.BadRequest(
                f"design data, the organization and mutations need your own access token: send it as {header}: Bearer …"
            )
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": authorization}
        request = http_post.HttpRequest(
            self._url, classify.SERVICE, body, headers, billed=False, max_bytes=self._max_bytes
        )
        return await http_post.post(self._session, request)
