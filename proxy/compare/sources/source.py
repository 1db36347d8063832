"""One file of requests, read into calls. What is no request is counted, with where it first stands, and never fatal."""

from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from proxy import errors, parameters
from proxy.compare.calls import Call, read_target
from proxy.compare.clients import Clients
from proxy.compare.sources import packing
from proxy.compare.sources.entries import Entry, Item, Reader, Unreadable

ASKED = {"GET", "HEAD"}
OTHER_METHOD = "its method is not GET or HEAD"

# JSONP's: a new one each time, and answers are compared without it.
PASSING = {"callback", "_"}


class Count(msgspec.Struct, frozen=True):
    """How often something was no request, for one reason; `first` is where, such as `access.log:17`."""

    reason: str
    times: int
    first: str


class Source:
    """Iterates over its file anew each time; `junk`, `skipped` and `seconds` are of what was read last.

    `junk` could not be read; `skipped` are requests of something else than v3, and what is asked twice. `seconds` lie
    between the first and the last timestamp in the file, None where there are not two.
    """

    def __init__(self, path: Path, kind: str, reader: Reader, clients: Clients) -> None:
        self.name = path.name
        self.kind = kind
        self._path = path
        self._reader = reader
        self._clients = clients
        self._begin()

    @property
    def junk(self) -> tuple[Count, ...]:
        """The most frequent first."""
        return _sorted(self._junk)

    @property
    def skipped(self) -> tuple[Count, ...]:
        """The most frequent first."""
        return _sorted(self._skipped)

    @property
    def seconds(self) -> float | None:
        """From the earliest timestamp to the latest."""
        return self._last - self._first if self._last > self._first else None

    def calls(self) -> Iterator[Call]:
        """Every call, in order. Raises SourceError for a file that cannot be opened or has none, with a reason."""
        self._begin()
        found = False
        with packing.opened(self._path) as stream, closing(self._read(self._reader(stream))) as read:
            for call in read:
                found = True
                yield call
        if not found:
            raise errors.SourceError(self._nothing())

    def _begin(self) -> None:
        self._junk: dict[str, Count] = {}
        self._skipped: dict[str, Count] = {}
        self._first, self._last = float("inf"), float("-inf")

    def _read(self, items: Iterator[Item]) -> Generator[Call, None, None]:
        place: int | str = "the beginning"
        try:
            for item in items:
                place = item.place
                call = self._call(item)
                if call is not None:
                    yield call
        except packing.Cut as cut:
            self._note(self._junk, f"after {place}", str(cut))

    def _call(self, item: Item) -> Call | None:
        if not isinstance(item, Entry):
            self._note(self._junk if isinstance(item, Unreadable) else self._skipped, item.place, item.reason)
            return None
        if item.at is not None:
            self._first, self._last = min(self._first, item.at), max(self._last, item.at)
        if item.method not in ASKED:
            self._note(self._skipped, item.place, OTHER_METHOD)
            return None
        try:
            path, query, key = read_target(item.target)
        except ValueError as error:
            self._note(self._skipped, item.place, str(error))
            return None
        origin = self._origin(item.place)
        client = item.client or self._clients.met(key or item.key, origin, item.agent)
        lasting = tuple(pair for pair in query if parameters.bare(pair[0]) not in PASSING)
        return Call(path, lasting, client, item.times, origin)

    def _note(self, counts: dict[str, Count], place: int | str, reason: str) -> None:
        known = counts.get(reason) or Count(reason, 0, self._origin(place))
        counts[reason] = msgspec.structs.replace(known, times=known.times + 1)

    def _origin(self, place: int | str) -> str:
        return f"{self.name}:{place}"

    def _nothing(self) -> str:
        """Why there is no call in the file."""
        counts = [*self._junk.values(), *self._skipped.values()]
        if not counts:
            return f"{self._path}: there is nothing in it"
        first, total = counts[0], sum(count.times for count in counts)
        more = f" ({total - 1} more could not be read either)" if total > 1 else ""
        return f"{self._path}: no request of v3 in it, read as {self.kind}: {first.first}: {first.reason}{more}"


def _sorted(counts: dict[str, Count]) -> tuple[Count, ...]:
    return tuple(sorted(counts.values(), key=lambda count: -count.times))
