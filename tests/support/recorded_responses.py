"""Recordings of v3 responses: a text file with a line for each request, which holds a digest and the request's name.

A digest is of status, content type and body, byte for byte. With the option `--renew-responses` of pytest
(tests/conftest.py) the lines of the requests that ran are written anew, and what changed stands in the file's diff.
"""

import hashlib
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

DIGITS = 12


class RecordedResponses:
    """The digests of a file. If they are being renewed, each response is the one to expect."""

    def __init__(self, file: Path, renewed: bool) -> None:
        self.file = file
        self.renewed = renewed
        lines = (line.split(" ", 1) for line in file.read_text("utf-8").splitlines())
        self._expected = {name: digest for digest, name in lines}

    def keep_only(self, names: set[str], test: str) -> str:
        """Say which requests of the recording there are no more, and how a `test` forgets them; nothing if all are."""
        if self.renewed:
            self._expected = {name: digest for name, digest in self._expected.items() if name in names}
        gone = sorted(self._expected.keys() - names)
        return f"{self.file.name} has {', '.join(gone)}, which are no requests\n{_renewal(test)}" if gone else ""

    def difference(self, name: str, test: str, response: aiohttp.ClientResponse, text: str) -> str:
        """Say how the response to a request of that name differs from the one on record, and how its `test` renews it;
        nothing if it does not."""
        head = f"{response.status} {response.headers.get('Content-Type')}\n"
        received = hashlib.sha256((head + text).encode()).hexdigest()[:DIGITS]
        if self.renewed:
            self._expected[name] = received
        expected = self._expected.get(name)
        if received == expected:
            return ""
        changed = f"{self.file.name} has {expected}, got {received} for {response.request_info.url}"
        return f"{name}: {changed}\n{_renewal(test)}"

    def write(self) -> None:
        lines = (f"{digest} {name}\n" for name, digest in sorted(self._expected.items()))
        self.file.write_text("".join(lines), encoding="utf-8")


def _renewal(test: str) -> str:
    return f"renew it with: pytest --renew-responses {shlex.quote(test)}"


@contextmanager
def opened(file: Path, request: pytest.FixtureRequest) -> Iterator[RecordedResponses]:
    """Open a recording; if it is renewed, write it at the end of the block, unless a test has failed in it."""
    recording = RecordedResponses(file, request.config.getoption("--renew-responses"))
    failed_before = request.session.testsfailed
    yield recording
    if recording.renewed and request.session.testsfailed == failed_before:
        recording.write()
