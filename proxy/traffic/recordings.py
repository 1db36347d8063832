"""Recordings: responses of the old service as JSON lines, `{"url": …, "status": …, "body": …}`, also of the user's own.

The body is JSON, or text that holds it. A last line that is cut, by an interrupted run, is not read and overwritten by
the next. What the new service sends is never recorded: the vendor's terms allow a day (contract graphql.md §12).
"""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from pathlib import Path
from typing import IO

import msgspec

from proxy import errors
from proxy.redaction import Redaction
from proxy.traffic import files
from proxy.traffic.v3_request import V3Request, parse_target, redact_request

NO_RESPONSE = "has no response to this request in its file"


class SideResponse(msgspec.Struct, frozen=True):
    """Response of a service as received. `parts` is the cost that it states, if any; `unsupported` are the names that
    X-V3-Unsupported lists. `failure` is the reason why there is no response: then `status` is 0 and the body empty."""

    status: int
    body: bytes
    parts: int | None = None
    failure: str | None = None
    unsupported: tuple[str, ...] = ()


class RecordedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of a recording: a request, with its client and times, and the response of the service at `baseline`."""

    url: str
    body: msgspec.Raw
    status: int = 200
    baseline: str = ""
    client: str = msgspec.field(default="", name="v3bridge_client")
    times: int = msgspec.field(default=1, name="v3bridge_times")


class Recording:
    """Recorded responses, to be closed after use. `keys` are the API keys in a user's own file, which must be redacted;
    `unreadable` counts lines that are no responses, the first of them at line `first_unreadable`. `whole` is the length
    in bytes of the whole lines of a file that is not compressed; `requests` are those of the lines, by digest."""

    def __init__(self, path: Path) -> None:
        """Raise ConfigError where the file cannot be read or holds no response."""
        self.path = path
        self.baseline = ""
        self.keys: set[str] = set()
        self.unreadable = self.first_unreadable = self.whole = 0
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._places: dict[str, int] = {}
        self.requests: dict[str, V3Request] = {}
        try:
            with files.open_file(path) as stream, contextlib.suppress(files.TruncatedFile):
                for number, text in enumerate(stream, 1):
                    self.whole += len(text) if text.endswith(b"\n") else 0
                    if not text.strip():
                        continue
                    try:
                        line = msgspec.json.decode(text, type=RecordedLine)
                        sent, query, key = parse_target(line.url if "/v3/" in line.url else f"/v3{line.url}")
                    except (ValueError, msgspec.MsgspecError):
                        self.first_unreadable = self.first_unreadable or number
                        self.unreadable += 1
                        continue
                    self.keys |= {key} if key else set()
                    self.baseline = self.baseline or line.baseline
                    request = V3Request(sent, query, line.client, line.times)
                    self._places[_key(request, line.client)] = self._places[_key(request, "")] = self._spool.tell()
                    self.requests[_key(request, line.client)] = request
                    self._spool.write(text.strip() + b"\n")
        except errors.SourceError as error:
            self.close()
            raise errors.ConfigError(error.message) from None
        if not self._places:
            self.close()
            raise errors.ConfigError(f"{path} holds no response, such as " + '{"url": …, "status": 200, "body": …}')

    def response(self, request: V3Request) -> SideResponse | None:
        """Return the response to a request of its client, else of another client, redacted and without cost."""
        place = self._places.get(_key(request, request.client), self._places.get(_key(request, "")))
        if place is None:
            return None
        self._spool.seek(place)
        line = msgspec.json.decode(self._spool.readline(), type=RecordedLine)
        raw = bytes(line.body)
        text = msgspec.json.decode(raw, type=str).encode() if raw.startswith(b'"') else raw
        return SideResponse(line.status, text, parts=0)

    def close(self) -> None:
        self._spool.close()

    async def fetch(self, request: V3Request) -> SideResponse:
        """Replay the response of the baseline."""
        return self.response(request) or SideResponse(0, b"", parts=0, failure=NO_RESPONSE)


class Recorder:
    """Writer of a recording, which goes on with the file of an earlier run: `earlier` has the responses of that."""

    def __init__(self, path: Path, baseline: str, redaction: Redaction) -> None:
        """Create the file, or append to it after its last whole line. Raises ConfigError for one of anything else."""
        self._baseline, self._redaction = baseline, redaction
        self.earlier = Recording(path) if path.exists() and path.stat().st_size else None
        if self.earlier and (self.earlier.unreadable > 1 or self.earlier.baseline != baseline):
            self.earlier.close()
            raise errors.ConfigError(f"{path} is no recording of {baseline}, and is left as it is: name another file")
        try:
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.truncate(self.earlier.whole if self.earlier else 0)
        except OSError as error:
            reason = "another run is writing to it" if isinstance(error, BlockingIOError) else error.strerror
            raise errors.ConfigError(f"the recording {path} cannot be written: {reason}") from error

    def keep(self, request: V3Request, response: SideResponse) -> None:
        """Write a request with its response, without keys. It is in the file on return."""
        shown = redact_request(request, self._redaction)
        # Responses may repeat a key that the request has in another parameter.
        body = self._redaction.including(request.target()).body(response.body).decode("utf-8", "replace")
        raw = msgspec.Raw(msgspec.json.encode(body))
        line = RecordedLine(f"/v3{shown.target()}", raw, response.status, self._baseline, shown.client, shown.times)
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
        if self.earlier:
            self.earlier.close()


def _key(request: V3Request, client: str) -> str:
    """Digest of a request, independent of the order of its parameters."""
    encoded = msgspec.json.encode((client, request.path, sorted(request.query)))
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
