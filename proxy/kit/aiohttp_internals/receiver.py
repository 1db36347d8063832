"""Receives the whole response to a request, over a connection of aiohttp's pool, with a parser for usual responses.

aiohttp parses a response into a stream, with flow control and timers for bodies of any length, which takes most of the
time of an exchange of 14 KB. A final response over HTTP/1.1 whose body is delimited by Content-Length or by chunks,
plain or compressed with gzip, is parsed here. Any other is left to aiohttp's parser from its first byte: interim
responses, bodies that end with their connection, other encodings, and what is not HTTP.
"""

import asyncio
import re
import zlib
from typing import NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler

HEAD_END = b"\r\n\r\n"
HEAD_MAX = 16_384  # bytes, beyond which aiohttp's parser decides
LINE_MAX = 8_192  # bytes of a line between chunks
GZIP = 16 + zlib.MAX_WBITS
# Responses without a body, and interim ones, are aiohttp's business.
STATUS_LINE = re.compile(rb"HTTP/1\.1 (?!204|304)([2-5]\d\d)(?: .*)?")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
FIELDS = frozenset({b"content-length", b"transfer-encoding", b"content-encoding", b"connection", b"retry-after"})


class TooLargeError(Exception):
    """The response has more bytes than allowed. The connection must be closed: the rest of the body is unread."""


class WholeResponse(NamedTuple):
    """Status, body, decompressed, and the Retry-After field."""

    status: int
    body: bytes
    retry_after: str | None


class ReceiveLimits(NamedTuple):
    """Limits of a response: `end` in the event loop's time, seconds without a byte, bytes of the decompressed body."""

    end: float | None
    read_timeout: float | None
    max_bytes: int


class ReceivingHandler(ResponseHandler):
    """aiohttp's handler of a connection, which leaves what is received to `receiver` while there is one."""

    receiver: "ResponseReceiver | None" = None

    def begin(self, receiver: "ResponseReceiver") -> None:
        """Let a receiver have what comes from now on."""
        self._parser = None  # of an earlier response, to which later bytes would seem to belong
        self.receiver = receiver

    def data_received(self, data: bytes) -> None:
        if self.receiver is None:
            super().data_received(data)
        else:
            self.receiver.data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self.receiver is not None:
            self.receiver.connection_lost(exc)
        super().connection_lost(exc)


class ResponseReceiver:
    """One response on its way. `total_bytes` of its body have arrived, decompressed."""

    __slots__ = ("_body", "_handler", "_last_byte", "_limits", "_loop", "_response", "_timer", "_unparsed")

    def __init__(self, handler: ReceivingHandler, limits: ReceiveLimits, loop: asyncio.AbstractEventLoop) -> None:
        self._handler = handler
        self._limits = limits
        self._loop = loop
        self._response: asyncio.Future[WholeResponse | None] = loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._last_byte = loop.time()
        self._unparsed = b""
        self._body: _Body | None = None

    @property
    def answered(self) -> bool:
        """Whether the head of the response has come."""
        return self._body is not None

    @property
    def total_bytes(self) -> int:
        return 0 if self._body is None else self._body.size

    async def send(self, request: bytes) -> WholeResponse | None:
        """Send a request and return its response; None where it is left to aiohttp's parser, which has its beginning.

        Raises TooLargeError, TimeoutError and the errors of aiohttp's client.
        """
        transport = self._handler.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection has been closed")
        self._handler.begin(self)
        self._set_timer()
        transport.write(request)
        try:
            return await self._response
        finally:
            self._end()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        self._last_byte = self._loop.time()
        try:
            if self._body is None:
                data = self._parse_head(self._unparsed + data)
            if self._body is not None and (rest := self._body.feed(data)) is not None:
                self._finish(self._body, rest)
        except TooLargeError as error:
            self._fail(error)
        except (ValueError, zlib.error) as error:
            self._fail(aiohttp.ClientPayloadError("the body is not what its head says"), error)

    def connection_lost(self, error: BaseException | None) -> None:
        """Fail as aiohttp's handler does."""
        if self._body is not None:
            self._fail(aiohttp.ClientPayloadError("the connection was closed within the body"), error)
        elif isinstance(error, OSError):
            self._fail(aiohttp.ClientOSError(*error.args), error)
        else:
            self._fail(aiohttp.ServerDisconnectedError(), error)

    def _parse_head(self, data: bytes) -> bytes:
        """Begin the body where the head is complete; return what follows the head."""
        end = data.find(HEAD_END)
        if end < 0 and len(data) <= HEAD_MAX:
            self._unparsed = data
            return b""
        self._body = _body(data[:end], self._limits.max_bytes) if end >= 0 else None
        if self._body is None:
            self._leave_to_aiohttp(data)
        return data[end + len(HEAD_END) :]

    def _leave_to_aiohttp(self, data: bytes) -> None:
        self._end()
        self._handler.set_response_params(read_until_eof=True, read_timeout=self._limits.read_timeout)
        self._handler.data_received(data)
        if not self._response.done():
            self._response.set_result(None)

    def _finish(self, body: "_Body", rest: bytes) -> None:
        if rest:
            raise ValueError("bytes behind the response, which belong to no request")
        if body.closes_connection:
            self._handler.force_close()
        self._end()
        if not self._response.done():
            self._response.set_result(WholeResponse(body.status, body.content(), body.retry_after))

    def _fail(self, error: Exception, cause: BaseException | None = None) -> None:
        self._end()
        if self._body is not None:
            self._body.drop()  # the traceback references this receiver until garbage collection
        error.__cause__ = cause
        if not self._response.done():
            self._response.set_exception(error)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._handler.receiver is self:
            self._handler.receiver = None

    def _set_timer(self) -> None:
        """One timer for both limits; a byte that comes does not move it, so that it may be early."""
        end, read_timeout, _ = self._limits
        times = [] if end is None else [end]
        if read_timeout:
            times.append(self._last_byte + read_timeout)
        if times:
            self._timer = self._loop.call_at(min(times), self._check_time)

    def _check_time(self) -> None:
        end, read_timeout, _ = self._limits
        now = self._loop.time()
        if end is not None and now >= end:
            self._fail(TimeoutError())
        elif read_timeout and now >= self._last_byte + read_timeout:
            self._fail(aiohttp.SocketTimeoutError("no byte in time"))
        else:
            self._set_timer()


def _body(head: bytes, max_bytes: int) -> "_Body | None":
    """Return the body that a response head announces, None where aiohttp is to parse it. Raises TooLargeError."""
    status_line, *lines = head.split(b"\r\n")
    match = STATUS_LINE.fullmatch(status_line)
    fields: dict[bytes, bytes] = {}
    if match is None or head.count(b"\n") != len(lines):
        return None
    for line in lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in FIELDS:
            if name in fields:
                return None
            fields[name] = value.strip().lower()
    length, coding = fields.get(b"content-length"), fields.get(b"content-encoding", b"")
    chunks = fields.get(b"transfer-encoding")
    is_usual = chunks == b"chunked" if length is None else chunks is None and length.isdigit() and len(length) < 16
    if not is_usual or coding not in (b"", b"gzip"):
        return None
    if length is not None and int(length) > max_bytes:
        raise TooLargeError
    retry_after = fields.get(b"retry-after")
    return _Body(
        int(match[1]),
        None if length is None else int(length),
        max_bytes,
        is_compressed=coding == b"gzip",
        closes_connection=b"close" in fields.get(b"connection", b""),
        retry_after=None if retry_after is None else retry_after.decode("latin-1"),
    )


class _Body:
    """Body of a response, of `length` bytes, or in chunks (RFC 9112 §7.1). Raises ValueError, zlib.error and
    TooLargeError for bytes that are no such body."""

    def __init__(
        self,
        status: int,
        length: int | None,
        max_bytes: int,
        *,
        is_compressed: bool,
        closes_connection: bool,
        retry_after: str | None,
    ) -> None:
        self.status = status
        self.closes_connection = closes_connection
        self.retry_after = retry_after
        self.size = 0
        self._max_bytes = max_bytes
        self._gunzip = zlib.decompressobj(GZIP) if is_compressed else None
        self._pieces: list[bytes] = []
        self._is_chunked = length is None
        self._left = length or 0  # of the body, or of the current chunk
        self._line = b""  # beginning of a line between chunks
        self._is_line_end = self._is_trailer = False

    def content(self) -> bytes:
        """Return the whole body, decompressed."""
        if self._gunzip is not None and self._gunzip.unused_data:
            raise ValueError("something follows the compressed data")
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def drop(self) -> None:
        """Free what has come."""
        self._pieces.clear()

    def feed(self, data: bytes) -> bytes | None:
        """Add received bytes; return what follows the body, None while it is incomplete."""
        if self._is_chunked:
            return self._feed_chunks(self._line + data)
        rest = data[self._left :] if len(data) > self._left else b""
        self._add(data)
        return None if self._left else rest

    def _add(self, data: bytes) -> int:
        """Add bytes that are left of the body or the chunk; return their number."""
        piece = data[: self._left]
        self._left -= len(piece)
        number = len(piece)
        if self._gunzip is not None:
            piece = self._gunzip.decompress(piece, self._max_bytes + 1 - self.size)
        self.size += len(piece)
        if self.size > self._max_bytes:
            raise TooLargeError
        self._pieces.append(piece)
        return number

    def _feed_chunks(self, data: bytes) -> bytes | None:
        at = 0
        while at < len(data):
            if self._left:
                at += self._add(data[at : at + self._left])
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            line, at = data[at:end], end + 2
            if self._is_trailer and not line:
                return data[at:]
            if not self._is_trailer:
                self._begin_chunk(line)
        self._line = data[at:]
        if len(self._line) > LINE_MAX:
            raise ValueError("a line between chunks is too long")
        return None

    def _begin_chunk(self, line: bytes) -> None:
        """Read the line behind a chunk, which is empty, or the size of the next chunk."""
        if self._is_line_end:
            if line:
                raise ValueError("a chunk is longer than its size")
            self._is_line_end = False
            return
        match = CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise ValueError("an invalid size of a chunk")
        self._left = int(match[1], 16)
        self._is_line_end = self._left > 0
        self._is_trailer = not self._left
