"""Recorder: writes the responses of both sides, redacted, as JSON lines in zstd.

The first line is a header. Each further line is a zstd frame of its own, so that a truncated file loses only its last
line; it holds a request with its responses. recorded.py reads the file. What the new service sent ends after a day,
because the vendor's terms allow no more (contract graphql.md §12): digests and the baseline's responses stay.
"""

import base64
import contextlib
import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import proxy
from proxy import errors
from proxy.kit import zstd
from proxy.redaction import Redaction
from proxy.traffic.recording import line_files
from proxy.traffic.v3_request import V3Request, redact_request
from proxy.traffic.v3_response import SideResponse

FORMAT = 1
LEVEL = 6  # of zstd
KEPT_SECONDS = 86_400.0


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Header of a recording. `made` is in seconds since 1970; a side without requests is None."""

    format: int = msgspec.field(default=FORMAT, name="v3bridge-recording")
    by: str = f"v3bridge {proxy.__version__}"
    made: float
    baseline: str | None = msgspec.field(name="old")
    candidate: str | None = msgspec.field(name="new")
    source: str


class RecordedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of a side. `body` is text, or base64 where it is not UTF-8; `digest` is that of a body that ended."""

    status: int
    body: str
    seconds: float = 0.0
    content_type: str = ""
    base64: bool = False
    digest: str = ""

    def response(self) -> SideResponse:
        """Return the response as received, but redacted and without cost."""
        body = base64.b64decode(self.body) if self.base64 else self.body.encode()
        return SideResponse(self.status, body, self.seconds, self.content_type, 0)


class RecordingLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of the file: a request with its responses.

    `lookup` is in place of `request` where the comparison looked up a name: it is not a request of the source. `at` is
    when the candidate responded, in seconds since 1970; 0 for data of a sandbox, which does not end.
    """

    request: V3Request | None = msgspec.field(default=None, name="call")
    lookup: V3Request | None = None
    baseline: RecordedResponse | None = msgspec.field(default=None, name="old")
    candidate: RecordedResponse | None = msgspec.field(default=None, name="new")
    at: float = 0.0

    def has_ended(self, now: float) -> bool:
        """Return whether the line has data that must not be kept any longer."""
        has_data = self.candidate is not None and not self.candidate.digest
        return has_data and 0.0 < self.at <= now - KEPT_SECONDS

    def without_data(self) -> "RecordingLine":
        """Return what stays of a line that has ended."""
        candidate = self.candidate
        if candidate is None or candidate.digest:
            return self
        digest = hashlib.blake2b(candidate.body.encode(), digest_size=16).hexdigest()
        ended = msgspec.structs.replace(candidate, body="", base64=False, digest=digest)
        return msgspec.structs.replace(self, candidate=ended)


class RecordedExchange(msgspec.Struct, frozen=True):
    """Responses to one request, as passed to the recorder. `lookup`: the comparison looked up a name."""

    request: V3Request
    baseline: SideResponse | None = None
    candidate: SideResponse | None = None
    lookup: bool = False


class Recorder:
    """Writer of a recording. `known` are the ids of the requests in it; `time` is that of the data which it is given
    (RecordingLine.at)."""

    def __init__(self, path: Path, header: RecordingHeader, redaction: Redaction, time: Callable[[], float]) -> None:
        """Create the file, or append to a recording of the same run after its last whole line. Raises ConfigError where
        it holds anything else."""
        self._redaction = redaction
        self._time = time
        self.known: set[str] = set()
        try:
            self._file = line_files.open_locked(path)
        except OSError as error:
            raise errors.ConfigError(f"the recording {path} cannot be written: {error.strerror}") from error
        with contextlib.ExitStack() as if_refused:
            if_refused.enter_context(self._file)
            if path.stat().st_size:
                self._go_on(path, header)
            else:
                self._write(header)
            if_refused.pop_all()

    def keep(self, answers: RecordedExchange) -> None:
        """Write a request with its responses. They are in the file on return."""
        request = redact_request(answers.request, self._redaction)
        # Responses may repeat a key that the request has in another parameter.
        hidden = self._redaction.including(answers.request.target())
        line = RecordingLine(
            request=None if answers.lookup else request,
            lookup=request if answers.lookup else None,
            baseline=_response(answers.baseline, hidden),
            candidate=_response(answers.candidate, hidden),
            at=self._time(),
        )
        self._write(line)
        if not answers.lookup:
            self.known.add(answers.request.id)

    def close(self) -> None:
        self._file.close()

    def _go_on(self, path: Path, header: RecordingHeader) -> None:
        lines = iter(line_files.WholeLines(path))
        try:
            begun = msgspec.json.decode(next(lines, b""), type=RecordingHeader)
        except msgspec.MsgspecError:
            raise _left(path, "is not a recording") from None
        same = (begun.format, begun.baseline, begun.candidate, begun.source) == (
            FORMAT,
            header.baseline,
            header.candidate,
            header.source,
        )
        if not same:
            raise _left(path, "holds the recording of another run")
        try:
            for text in lines:
                line = msgspec.json.decode(text, type=RecordingLine)
                if line.request is not None:
                    self.known.add(line.request.id)
        except msgspec.MsgspecError:
            raise _left(path, "holds a line that cannot be read") from None
        whole = line_files.whole_frames(path)
        if not whole:
            raise _left(path, "was recompressed, and cannot be appended to")
        self._file.truncate(whole)

    def _write(self, line: Any) -> None:
        self._file.write(_frame(line))
        self._file.flush()


def drop_ended(path: Path, now: float) -> None:
    """Replace a recording by one without the data that has ended. Raises OSError, also while a run writes to it."""
    with line_files.open_locked(path), tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            lines = iter(line_files.WholeLines(path))
            file.write(_frame(msgspec.json.decode(next(lines), type=RecordingHeader)))
            for text in lines:
                line = msgspec.json.decode(text, type=RecordingLine)
                file.write(_frame(line.without_data() if line.has_ended(now) else line))
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise


def _frame(line: Any) -> bytes:
    return zstd.compress(msgspec.json.encode(line) + b"\n", LEVEL)


def _response(response: SideResponse | None, hidden: Redaction) -> RecordedResponse | None:
    if response is None:
        return None
    body = hidden.body(response.body)
    try:
        return RecordedResponse(response.status, body.decode(), response.seconds, response.content_type)
    except UnicodeDecodeError:
        text = base64.b64encode(body).decode()
        return RecordedResponse(response.status, text, response.seconds, response.content_type, True)


def _left(path: Path, why: str) -> errors.ConfigError:
    return errors.ConfigError(f"{path} {why}, and is left as it is: name another file")
