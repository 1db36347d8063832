"""Recordings of v3 responses: a text file with a line for each request, which holds a digest and the request's name.

A digest is of status, content type and body, byte for byte. With the option `--renew-responses` of pytest
(tests/conftest.py) a recording is written anew, and what changed stands in its diff.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

DIGITS = 12


class RecordedResponses:
    """The digests of a file. If they are being renewed, each response is the one to expect."""

    def __init__(self, file: Path, renewed: bool) -> None:
        self.file = file
        self._expected: dict[str, str] | None = None
        self._received: dict[str, str] = {}
        if not renewed:
            lines = (line.split(" ", 1) for line in file.read_text("utf-8").splitlines())
            self._expected = {name: digest for digest, name in lines}

    @property
    def names(self) -> set[str]:
        """The names of all requests of the recording."""
        return set(self._received if self._expected is None else self._expected)

    def difference(self, name: str, response: aiohttp.ClientResponse, text: str) -> str:
        """Say how the response to a request of that name differs from the one on record; nothing if it does not."""
        head = f"{response.status} {response.headers.get('Content-Type')}\n"
        received = self._received[name] = hashlib.sha256((head + text).encode()).hexdigest()[:DIGITS]
        expected = received if self._expected is None else self._expected.get(name)
        if received == expected:
            return ""
        return f"{name}: {self.file.name} has {expected}, got {received} for {response.request_info.url}"

    def write(self) -> None:
        lines = (f"{digest} {name}\n" for name, digest in self._received.items())
        self.file.write_text("".join(lines), encoding="utf-8")


@contextmanager
def opened(file: Path, *, renewed: bool) -> Iterator[RecordedResponses]:
    """Open a recording; write it at the end of the block if it is renewed."""
    recording = RecordedResponses(file, renewed)
    yield recording
    if renewed:
        recording.write()
