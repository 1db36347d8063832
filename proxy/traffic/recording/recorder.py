"""Recorder: writes the responses of both sides and of the GraphQL API, redacted, as JSON lines in zstd.

The first line is a header. Each further line is a zstd frame of its own, so that a truncated file loses only its last
line. Lines hold requests with their responses; GraphQL documents, by digest, and responses that all requests share
precede the first request that needs them. recorded.py reads the file. What the new service and the GraphQL API sent
ends after a day, also where that is the baseline of a document, because the vendor's terms allow no more (contract
graphql.md §12): digests and the baseline's other responses stay.
"""

import base64
import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Sequence
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
from proxy.upstream.replay import RecordedGraphQLResponse

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


class RecordedOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response of the GraphQL API; `document` is the digest of the operation's document."""

    operation: str
    variables: msgspec.Raw
    document: str
    body: str
    status: int = 200

    def noted(self, documents: dict[str, str]) -> RecordedGraphQLResponse:
        """Resolve the document. Raises KeyError where no earlier line holds it."""
        variables = bytes(self.variables).decode()
        return RecordedGraphQLResponse(
            self.operation, variables, documents[self.document], self.status, self.body.encode()
        )


class RecordedDocument(msgspec.Struct, frozen=True):
    """GraphQL document, stored once under its digest."""

    id: str
    text: str


class RecordingLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of the file: a request with its responses, or a document, or a response that is `shared` by all requests.

    `lookup` is in place of `request` where the comparison looked up a name: it is not a request of the source.
    `application` is the one that served the request, where the candidate ran in the same process. `at` is when the
    candidate and the GraphQL API responded, in seconds since 1970; 0 for data of a sandbox, which does not end.
    """

    request: V3Request | None = msgspec.field(default=None, name="call")
    lookup: V3Request | None = None
    application: str | None = None
    baseline: RecordedResponse | None = msgspec.field(default=None, name="old")
    candidate: RecordedResponse | None = msgspec.field(default=None, name="new")
    upstream: tuple[RecordedOperation, ...] = ()
    document: RecordedDocument | None = None
    shared: RecordedOperation | None = None
    at: float = 0.0

    def has_ended(self, now: float) -> bool:
        """Return whether the line has data that must not be kept any longer."""
        responses = (self.candidate, self.baseline if self._is_document else None)
        has_data = self.upstream or self.shared or any(each is not None and not each.digest for each in responses)
        return bool(has_data) and 0.0 < self.at <= now - KEPT_SECONDS

    def without_data(self) -> "RecordingLine":
        """Return what stays of a line that has ended."""
        baseline = _ended(self.baseline) if self._is_document else self.baseline
        return msgspec.structs.replace(
            self, baseline=baseline, candidate=_ended(self.candidate), upstream=(), shared=None
        )

    @property
    def _is_document(self) -> bool:
        return self.request is not None and self.request.is_document


def _ended(response: RecordedResponse | None) -> RecordedResponse | None:
    """Return the digest of a response in its place."""
    if response is None or response.digest:
        return response
    digest = hashlib.blake2b(response.body.encode(), digest_size=16).hexdigest()
    return msgspec.structs.replace(response, body="", base64=False, digest=digest)


class RecordedExchange(msgspec.Struct, frozen=True):
    """Responses to one request, as passed to the recorder. `lookup`: the comparison looked up a name."""

    request: V3Request
    baseline: SideResponse | None = None
    candidate: SideResponse | None = None
    notes: tuple[RecordedGraphQLResponse, ...] = ()
    application: str | None = None
    lookup: bool = False


class Recorder:
    """Writer of a recording. `known` are the ids of the requests in it; `time` is that of the data which it is given
    (RecordingLine.at)."""

    def __init__(self, path: Path, header: RecordingHeader, redaction: Redaction, time: Callable[[], float]) -> None:
        """Create the file, or append to a recording of the same run after its last whole line. Raises ConfigError where
        it holds anything else."""
        self._redaction = redaction
        self._time = time
        self._documents: set[str] = set()
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

    def keep(self, answers: RecordedExchange, shared: Sequence[RecordedGraphQLResponse] = ()) -> None:
        """Write a request with its responses. They are in the file on return."""
        for note in shared:
            self._write(RecordingLine(shared=self._note(note, self._redaction), at=self._time()))
        request = redact_request(answers.request, self._redaction)
        # Responses, and the operations behind them, may repeat a key that the request has in another parameter.
        hidden = self._redaction.including(answers.request.target())
        line = RecordingLine(
            request=None if answers.lookup else request,
            lookup=request if answers.lookup else None,
            application=answers.application,
            baseline=_response(answers.baseline, hidden),
            candidate=_response(answers.candidate, hidden),
            upstream=tuple(self._note(each, hidden) for each in answers.notes),
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
                self._know(msgspec.json.decode(text, type=RecordingLine))
        except msgspec.MsgspecError:
            raise _left(path, "holds a line that cannot be read") from None
        whole = line_files.whole_frames(path)
        if not whole:
            raise _left(path, "was recompressed, and cannot be appended to")
        self._file.truncate(whole)

    def _know(self, line: RecordingLine) -> None:
        """Note the content of a line, which is not to be written again."""
        if line.request is not None:
            self.known.add(line.request.id)
        if line.document is not None:
            self._documents.add(line.document.id)

    def _note(self, noted: RecordedGraphQLResponse, hidden: Redaction) -> RecordedOperation:
        digest = hashlib.blake2b(noted.document.encode(), digest_size=8).hexdigest()
        if digest not in self._documents:
            self._write(RecordingLine(document=RecordedDocument(digest, noted.document)))
            self._documents.add(digest)
        body = hidden.body(noted.body).decode("utf-8", "replace")
        variables = msgspec.Raw(hidden.body(noted.variables.encode()))
        return RecordedOperation(noted.name, variables, digest, body, noted.status)

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
