"""A response whose bytes are all known: aiohttp's way of readying any kind of response takes longer than a kept answer.

Nearly every client asks with GET over HTTP/1.1 and keeps its connection. For those the head is put together here, with
what aiohttp would add to it; everything else goes aiohttp's way.
"""

from aiohttp import HttpVersion11, abc, helpers, http, web
from multidict import istr

LENGTH, DATE, SERVER = istr("Content-Length"), istr("Date"), istr("Server")


class Ready(web.Response):
    """A `body` of bytes that nothing is done to any more: no cookies, compression or signals of an application."""

    _writer: abc.AbstractStreamWriter | None = None

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection stays, once that is known."""
        return True if self._writer is not None else super().keep_alive

    async def prepare(self, request: web.BaseRequest) -> abc.AbstractStreamWriter | None:
        """Find out how it is sent."""
        usual = request.method == "GET" and request.version == HttpVersion11 and request.keep_alive
        if not usual or self.keep_alive is False:
            return await super().prepare(request)
        self._writer = request.writer
        return self._writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Send it."""
        if self._writer is None:
            return await super().write_eof(data)
        body, headers = self.body, self.headers
        assert isinstance(body, bytes)  # noqa: S101 - nothing else is ready
        headers[LENGTH] = str(len(body))
        headers[DATE] = helpers.rfc822_formatted_time()
        headers[SERVER] = http.SERVER_SOFTWARE
        await self._writer.write_headers(f"HTTP/1.1 {self.status} {self.reason}", headers)
        return await self._writer.write_eof(body)
