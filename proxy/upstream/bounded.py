"""Reading a response within a bound of bytes, unpacked: memory must not be up to the other side.

Used by wire.py and exchange.py. Compressed bytes are read in pieces whose unpacked size aiohttp bounds.
"""

import aiohttp


class TooLargeError(Exception):
    """The response has more bytes than allowed. Whoever catches it closes the connection."""


async def read(content: aiohttp.StreamReader, most: int, announced: str | None) -> bytes:
    """The whole body, of at most `most` bytes. `announced` is its Content-Length. Raises TooLargeError."""
    if announced is not None and announced.isdigit() and int(announced) > most:
        raise TooLargeError
    pieces = [await content.readany()]
    size = len(pieces[0])
    try:
        while size <= most and (piece := await content.readany()):
            pieces.append(piece)
            size += len(piece)
            del piece
    except BaseException:
        pieces.clear()  # an error keeps its frames, and with them these, until the garbage collector comes by
        raise
    if size > most:
        pieces.clear()
        raise TooLargeError
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
