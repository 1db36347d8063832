"""Bodies of requests: each has a bound and BODY_SECONDS, and those that are under way have one bound together."""

import asyncio
import re
from urllib.parse import parse_qsl

from aiohttp import hdrs, web

from proxy import errors

BODY_BYTES = 1_048_576  # of a body, decompressed
FORM_BYTES, FORM_FIELDS = 16_384, 20
BODY_SECONDS = 20.0  # in which a body is sent
UNREAD_BYTES = 33_554_432  # of all bodies that are under way
RETRY_SECONDS = 1
CONTINUE = "100-continue"  # a client that waits until its body is wanted

# Compared and not parsed, and decoded as nothing else: some codecs that a sender can name take minutes.
_FORM = re.compile(r'application/x-www-form-urlencoded *(; *charset="?utf-?8"?)? *', re.IGNORECASE)


class RequestBodies:
    """Reads the bodies of requests."""

    def __init__(self) -> None:
        self._unread = 0  # bytes of bodies that are under way

    async def read(self, request: web.BaseRequest, bytes_max: int = BODY_BYTES) -> bytes:
        """Return a body. Raises ContentTooLarge, RequestTimeout, TooManyConnections where all take too much, and
        BadRequest where the client ended it early."""
        if (request.content_length or 0) > bytes_max:
            raise _too_long(bytes_max)
        if request.headers.get(hdrs.EXPECT, "").lower() == CONTINUE:
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # nothing of the response has been sent
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in request.content.iter_any():
                    body += piece
                    self._unread += len(piece)
                    if len(body) > bytes_max:
                        raise _too_long(bytes_max)
                    if self._unread > UNREAD_BYTES:
                        raise errors.TooManyConnections("too many bodies are being sent", retry_after=RETRY_SECONDS)
        except TimeoutError:
            raise errors.RequestTimeout(f"the body was not sent within {BODY_SECONDS:.0f} seconds") from None
        except (ConnectionError, web.RequestPayloadError) as error:
            raise errors.BadRequest("the body is broken, or ended early") from error
        finally:
            self._unread -= len(body)
        return bytes(body)

    async def form(self, request: web.BaseRequest) -> dict[str, str]:
        """Return the fields of a form. Raises UnsupportedMediaType for one that is not plain and in UTF-8, and what
        `read` raises."""
        sent = request.headers.getall(hdrs.CONTENT_TYPE, ())
        if hdrs.CONTENT_ENCODING in request.headers or not all(map(_FORM.fullmatch, sent)):
            raise errors.UnsupportedMediaType(
                "a form is sent as application/x-www-form-urlencoded, in UTF-8 and not compressed"
            )
        body = await self.read(request, FORM_BYTES)
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS))
        except ValueError as error:
            raise errors.BadRequest(f"the form has more than {FORM_FIELDS} fields, or is not in UTF-8") from error


def _too_long(bytes_max: int) -> errors.ContentTooLarge:
    return errors.ContentTooLarge(f"the body is longer than {bytes_max} bytes")
