"""Response whose status, headers and body are final: it is written without aiohttp's preparation of a response.

aiohttp prepares cookies, compression, chunking and signals for every response, which takes longer than a response cache
hit. A GET over HTTP/1.1 on a kept-alive connection needs none of it: its head is written here, with the headers that
aiohttp would add. Everything else is prepared by aiohttp.
"""

from aiohttp import HttpVersion11, abc, helpers, http, web
from multidict import istr

LENGTH, DATE, SERVER = istr("Content-Length"), istr("Date"), istr("Server")


def head_end(length: int) -> str:
    """Return the last fields of a response head, and its end, as `PreparedResponse` writes them."""
    date, server = helpers.rfc822_formatted_time(), http.SERVER_SOFTWARE
    return f"{LENGTH}: {length}\r\n{DATE}: {date}\r\n{SERVER}: {server}\r\n\r\n"


class PreparedResponse(web.Response):
    """Response with a `body` of bytes. Cookies, compression and `on_response_prepare` signals are not supported."""

    _writer: abc.AbstractStreamWriter | None = None

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection stays open after the response; None until that is decided."""
        return True if self._writer is not None else super().keep_alive

    async def prepare(self, request: web.BaseRequest) -> abc.AbstractStreamWriter | None:
        """Choose the way of writing. aiohttp calls this once, before `write_eof`."""
        fast = request.method == "GET" and request.version == HttpVersion11 and request.keep_alive
        if not fast or self.keep_alive is False:
            return await super().prepare(request)
        self._writer = request.writer
        return self._writer

    async def write_eof(self, data: bytes = b"") -> None:
        if self._writer is None:
            return await super().write_eof(data)
        body, headers = self.body, self.headers
        assert isinstance(body, bytes)  # noqa: S101 - the constructor is given nothing else
        headers[LENGTH] = str(len(body))
        headers[DATE] = helpers.rfc822_formatted_time()
        headers[SERVER] = http.SERVER_SOFTWARE
        await self._writer.write_headers(f"HTTP/1.1 {self.status} {self.reason}", headers)
        return await self._writer.write_eof(body)
