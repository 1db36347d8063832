"""Responses from a file: a recording of this program, or JSON lines of the user, `{"url": …, "body": …}`.

`Recording` looks up the responses to a request. `RecordedSide` is a baseline that replays them.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from proxy import errors
from proxy.traffic.recording.line_files import Spool, WholeLines
from proxy.traffic.recording.recorder import FORMAT, RecordedResponse, RecordingHeader, RecordingLine, drop_ended
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.traffic.v3_response import SideResponse

ENDED = "the data of the Nexar API was older than a day, and is dropped"
LOOKUP = "look-up "  # prefix of the keys of look-ups


class _UserLine(msgspec.Struct, frozen=True):
    """Line of a user's own file. `body` is JSON, or a string that contains it."""

    body: msgspec.Raw
    url: str | None = None
    path: str | None = None
    status: int = 200


class UnreadableLines(msgspec.Struct):
    """Number of lines that are not valid responses, and the number of the first one."""

    lines: int = 0
    first: int = 0

    def add(self, number: int) -> None:
        self.first = self.first or number
        self.lines += 1


class Recording:
    """Recorded responses, to be closed after use. `header` is None for a user's own file; `cut` marks a truncated file.

    `keys` are the API keys in a user's own file, which must be redacted; `ended` counts lines whose data is dropped,
    because it is older than a day.
    """

    def __init__(self, path: Path, now: float) -> None:
        """Raise ConfigError where the file cannot be read or holds no response."""
        self.path = path
        self._now = now
        self.ended = 0
        self.header: RecordingHeader | None = None
        self.junk = UnreadableLines()
        self.keys: set[str] = set()
        self._spool = Spool()
        self._any: dict[str, str] = {}
        try:
            self.cut = self._read_all()
            if self.ended and not self.junk.lines:
                with contextlib.suppress(OSError):  # a run writes to it, or nobody may: it is dropped here anyway
                    drop_ended(path, now)
        except BaseException:
            self._spool.close()
            raise

    def requests(self) -> Iterator[V3Request]:
        for text in self._spool:
            line = msgspec.json.decode(text, type=RecordingLine)
            if line.request is not None:
                yield line.request

    def line(self, request: V3Request) -> RecordingLine | None:
        """Return the recording of a request: that of its client, else one of the same request by another client, else
        one of a look-up."""
        anyone = _key(request, "")
        keys = _key(request, request.client), self._any.get(anyone, ""), LOOKUP + anyone
        stored = next((line for key in keys if (line := self._spool.get(key))), None)
        return None if stored is None else msgspec.json.decode(stored, type=RecordingLine)

    def close(self) -> None:
        self._spool.close()

    def _read_all(self) -> bool:
        """Read the file; return true if it is truncated."""
        lines = WholeLines(self.path)
        try:
            for number, line in enumerate(lines.with_last(), 1):
                self._read(number, line)
        except FileNotFoundError as error:
            words = "there is no such file, and an address begins with http:// or https://"
            raise errors.ConfigError(f"the file of responses {self.path} cannot be read: {words}") from error
        except OSError as error:
            raise errors.ConfigError(f"the file of responses {self.path} cannot be read: {error.strerror}") from error
        if not len(self._spool):
            unrecorded = ": requests that a service refused or failed to serve are not recorded"
            why = f" (line {self.junk.first} is none, for one)" if self.junk.first else unrecorded
            raise errors.ConfigError(f"{self.path} holds no response{why}")
        return lines.cut

    def _read(self, number: int, text: bytes) -> None:
        if not text.strip():
            return
        if number == 1 and text.startswith(b'{"v3bridge-recording"'):
            self.header = self._checked(text)
        elif not self._is_taken(text):
            self.junk.add(number)

    def _is_taken(self, text: bytes) -> bool:
        try:
            self._take(self._own(text) if self.header is None else msgspec.json.decode(text, type=RecordingLine))
        except (ValueError, msgspec.MsgspecError):
            return False
        return True

    def _take(self, line: RecordingLine) -> None:
        if line.has_ended(self._now):
            self.ended += 1
            line = line.without_data()
        if line.request is not None:
            exact = _key(line.request, line.request.client)
            self._spool.add(exact, msgspec.json.encode(line))
            self._any[_key(line.request, "")] = exact
        if line.lookup is not None:
            self._spool.add(LOOKUP + _key(line.lookup, ""), msgspec.json.encode(line))

    def _own(self, text: bytes) -> RecordingLine:
        """Convert a line of a user's own file. Raises ValueError or MsgspecError."""
        own = msgspec.json.decode(text, type=_UserLine)
        target = own.url or own.path or ""
        path, query, key = parse_target(target if "://" in target[:12] or _has_prefix(target) else f"/v3{target}")
        if key is not None:
            self.keys.add(key)
        raw = bytes(own.body)
        body = msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode()
        return RecordingLine(request=V3Request(path, query, client=""), baseline=RecordedResponse(own.status, body))

    def _checked(self, text: bytes) -> RecordingHeader:
        try:
            header = msgspec.json.decode(text, type=RecordingHeader)
        except msgspec.MsgspecError:
            raise errors.ConfigError(f"the header of {self.path} cannot be read") from None
        if header.format != FORMAT:
            raise errors.ConfigError(
                f"{self.path} is a recording of format {header.format}; this program reads {FORMAT}"
            )
        return header


class RecordedSide:
    """Baseline that replays a file."""

    live = False

    def __init__(self, recorded: Recording) -> None:
        self.place = recorded.path.name
        self._recorded = recorded

    async def fetch(self, request: V3Request, request_id: str) -> SideResponse:  # noqa: ARG002 - part of the interface
        line = self._recorded.line(request)
        if line is None or line.baseline is None:
            return _failure("has no response to this request in its file")
        if line.baseline.digest:
            return _failure(f"has no recorded response: {ENDED}")
        return line.baseline.response()


def _has_prefix(target: str) -> bool:
    return target.startswith(("/v3/", "/api/"))


def _key(request: V3Request, client: str) -> str:
    """Digest of a request, independent of the order of its parameters."""
    encoded = msgspec.json.encode((client, request.path, sorted(request.query)))
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


def _failure(words: str) -> SideResponse:
    return SideResponse(0, b"", 0.0, parts=0, failure=words)
