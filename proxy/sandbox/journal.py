"""What the sandbox was asked, request by request: both services, what it cost, which fault struck, what came of it.

Written by whoever handles a request, read through `Sandbox.journal` and /admin/journal. It holds no token, no secret
and no value of a variable. Bounded: the oldest entries go, the totals count on.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.kit import clock as clocks

MAX_ENTRIES = 50_000


@dataclass(slots=True)
class JournalEntry:
    """A request. Filled in while it is under way: `whole` is None until it is over.

    `time` is in seconds since 1970, `service` graphql or token, `application` the id of who asked where that is known,
    `fields` those at the root of the operation. `parts` were billed. `status` None: no answer was sent. `whole` is
    whether the answer reached the caller as it was made, as far as this side can tell.
    """

    number: int
    time: float
    service: str
    application: str | None = None
    operation: str | None = None
    fields: tuple[str, ...] = ()
    parts: int = 0
    faults: tuple[str, ...] = ()
    status: int | None = None
    whole: bool | None = None


@dataclass(slots=True)
class JournalTotals:
    """Sums over all requests. `spoiled_parts` were billed in answers that did not arrive whole."""

    requests: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    spoiled_parts: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class RequestJournal:
    """The last `kept` entries, and totals since the last `clear`."""

    def __init__(self, clock: clocks.Clock, kept: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._entries: deque[JournalEntry] = deque(maxlen=kept)
        self._number = self._cleared = 0
        self.totals = JournalTotals()

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """Oldest first; those under way are among them."""
        return tuple(self._entries)

    def last(self, count: int) -> list[JournalEntry]:
        """The last `count` entries, oldest first."""
        return list(self._entries)[-count:] if count > 0 else []

    def clear(self) -> None:
        """Forget everything. What requests that are under way still do counts nowhere."""
        self._entries.clear()
        self._cleared = self._number
        self.totals = JournalTotals()

    def begin(self, service: str) -> JournalEntry:
        """The entry of a request that has come in."""
        self._number += 1
        entry = JournalEntry(self._number, self._clock.now(), service)
        self._entries.append(entry)
        self.totals.requests[service] += 1
        return entry

    def record_parts(self, entry: JournalEntry, parts: int) -> None:
        """The answer that was made has so many parts."""
        entry.parts += parts
        if self._counts(entry):
            self.totals.parts += parts

    def record_fault(self, entry: JournalEntry, kind: str) -> None:
        """A fault of this kind took effect."""
        entry.faults += (kind,)
        if self._counts(entry):
            self.totals.faults[kind] += 1

    def finish(self, entry: JournalEntry, *, whole: bool) -> None:
        """The request is over."""
        entry.whole = whole
        if not whole and self._counts(entry):
            self.totals.spoiled_parts += entry.parts

    def _counts(self, entry: JournalEntry) -> bool:
        return entry.number > self._cleared


MAX_DOCUMENTS = 256


@dataclass(slots=True)
class RequestCounts:
    """How many requests came, and the last (document, variables) pairs of the query service."""

    graphql: int = 0
    tokens: int = 0
    documents: deque[tuple[str, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=MAX_DOCUMENTS))

    def record_query(self, document: str, variables: Mapping[str, Any]) -> None:
        """A request of the query service that could be read."""
        self.graphql += 1
        self.documents.append((document, variables))

    def record_token(self) -> None:
        """A token request."""
        self.tokens += 1
