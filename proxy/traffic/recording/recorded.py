"""Responses from a file: a recording of this program, or JSON lines of the user, `{"url": …, "body": …}`.

`Recording` looks up the responses to a request. `RecordedSide` is a baseline that replays them; `ReplayedSide` is a
candidate: the current service, which gets the recorded responses of the GraphQL API and so costs no parts.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proxy import errors
from proxy.model import GRAPHQL_PATHS
from proxy.traffic.recording.line_files import Spool, WholeLines
from proxy.traffic.recording.recorder import FORMAT, RecordedResponse, RecordingHeader, RecordingLine, drop_ended
from proxy.traffic.sources.entries import with_document
from proxy.traffic.v3_request import V3Request, parse_any_target
from proxy.traffic.v3_response import ComparedSide, SideResponse
from proxy.upstream.replay import RecordedGraphQLResponse, ResponseRecorder, ResponseReplayer

ENDED = "the data of the Nexar API was older than a day, and is dropped"
LOOKUP = "look-up "  # prefix of the keys of look-ups


class _UserLine(msgspec.Struct, frozen=True):
    """Line of a user's own file. `body` is JSON, or a string that contains it; `request` a GraphQL request."""

    body: msgspec.Raw
    url: str | None = None
    path: str | None = None
    status: int = 200
    request: dict[str, Any] | None = None


class UnreadableLines(msgspec.Struct):
    """Number of lines that are not valid responses, and the number of the first one."""

    lines: int = 0
    first: int = 0

    def add(self, number: int) -> None:
        self.first = self.first or number
        self.lines += 1


class Recording:
    """Recorded responses, to be closed after use. `header` is None for a user's own file; `cut` marks a truncated file.

    `upstream` counts the responses of the GraphQL API; `keys` are the API keys in a user's own file, which must be
    redacted; `ended` counts lines whose data is dropped, because it is older than a day; `oldest` is the time of the
    oldest data that is left.
    """

    def __init__(self, path: Path, now: float) -> None:
        """Raise ConfigError where the file cannot be read or holds no response."""
        self.path = path
        self._now = now
        self.ended = 0
        self.oldest = 0.0
        self.header: RecordingHeader | None = None
        self.junk = UnreadableLines()
        self.shared: list[RecordedGraphQLResponse] = []
        self.upstream = 0
        self.keys: set[str] = set()
        self._documents: dict[str, str] = {}
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

    def notes(self, line: RecordingLine) -> tuple[RecordedGraphQLResponse, ...]:
        """Return the GraphQL responses behind a recorded response."""
        return tuple(each.noted(self._documents) for each in line.upstream)

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
        except (ValueError, KeyError, msgspec.MsgspecError):
            return False
        return True

    def _take(self, line: RecordingLine) -> None:
        if line.has_ended(self._now):
            self.ended += 1
            line = line.without_data()
        elif line.at:
            self.oldest = min(self.oldest or line.at, line.at)
        if line.document is not None:
            self._documents[line.document.id] = line.document.text
        if line.shared is not None:
            self.shared.append(line.shared.noted(self._documents))
        if line.request is not None:
            exact = _key(line.request, line.request.client)
            self._store(exact, line)
            self._any[_key(line.request, "")] = exact
        if line.lookup is not None:
            self._store(LOOKUP + _key(line.lookup, ""), line)

    def _store(self, key: str, line: RecordingLine) -> None:
        self.notes(line)  # raises KeyError for a missing document, before the line is stored
        self.upstream += len(line.upstream)
        self._spool.add(key, msgspec.json.encode(line))

    def _own(self, text: bytes) -> RecordingLine:
        """Convert a line of a user's own file. Raises ValueError or MsgspecError."""
        own = msgspec.json.decode(text, type=_UserLine)
        target = own.url or own.path or ""
        if own.request is not None and isinstance(own.request.get("query"), str):
            target = with_document(target or GRAPHQL_PATHS[0], own.request)
        path, query, key = parse_any_target(target if "://" in target[:12] or _has_prefix(target) else f"/v3{target}")
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
    return target.startswith(("/v3/", "/api/", *GRAPHQL_PATHS))


def _key(request: V3Request, client: str) -> str:
    """Digest of a request, independent of the order of its parameters."""
    encoded = msgspec.json.encode((client, request.path, sorted(request.query)))
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


class ReplayedSide:
    """Candidate that maps recorded GraphQL responses again: each request goes to `service` with its recording loaded.

    `applications` are those of the service; a request goes to the one that served it originally, or to the only one.
    `service` is called with the application as client. `upstream_recorder` gets the replayed responses.
    """

    live = False

    def __init__(
        self,
        recorded: Recording,
        service: ComparedSide,
        player: ResponseReplayer,
        applications: Mapping[str, str],
        upstream_recorder: ResponseRecorder,
    ) -> None:
        """Raise ConfigError for a recording without responses of the GraphQL API."""
        if not recorded.upstream and not recorded.shared:
            if recorded.ended:
                raise errors.ConfigError(f"{recorded.path}: {ENDED}: record again")
            raise errors.ConfigError(
                f"{recorded.path} holds no responses of the GraphQL service, so there is nothing to map again: "
                "they are recorded where the candidate is started here, with --config"
            )
        self.place = f"{recorded.path.name}, mapped again"
        self._recorded = recorded
        self._service = service
        self._player = player
        self._upstream_recorder = upstream_recorder
        self._applications = applications
        for noted in recorded.shared:
            player.add_shared(noted)

    async def fetch(self, request: V3Request, request_id: str) -> SideResponse:
        line = self._recorded.line(request)
        if line is not None and line.candidate is not None and line.candidate.digest:
            return _failure(f"has no recorded response: {ENDED}")
        if line is None or (line.candidate is None and not line.upstream):
            return _failure("has no recorded response to this request")
        application = self._application(line.application)
        if application is None:
            return _failure(f"has no application {line.application}, which answered when this was recorded")
        notes = self._recorded.notes(line)
        self._player.load(request_id, notes)
        for note in notes:
            self._upstream_recorder.record(request_id, note)
        try:
            response = await self._service.fetch(msgspec.structs.replace(request, client=application), request_id)
        finally:
            lacking = self._player.unload(request_id)
        return _failure(f"has no response: {lacking}") if lacking else msgspec.structs.replace(response, parts=0)

    def _application(self, name: str | None) -> str | None:
        if name in self._applications:
            return name
        return next(iter(self._applications)) if len(self._applications) == 1 else None


def _failure(words: str) -> SideResponse:
    return SideResponse(0, b"", 0.0, parts=0, failure=words)
