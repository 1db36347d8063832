"""Journal of requests: service, parts billed, injected faults, response status.

Read through `Sandbox.journal` and /admin/journal. Holds no tokens, secrets or values of variables. Bounded: the oldest
entries are dropped, totals are not.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nexar_sandbox import clocks

MAX_ENTRIES = 50_000


@dataclass(slots=True)
class JournalEntry:
    """One request. Filled in while it is in progress: `whole` is None until it ends.

    `time` is in seconds since 1970, `service` graphql or token, `application` the id of the client if known,
    `fields` those at the root of the operation. `parts` were billed. `status` None: no response was sent. `whole`:
    whether the unmodified response was delivered completely, as far as the server can tell.
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
    """Sums over all requests. `spoiled_parts` were billed in responses that were not delivered completely."""

    requests: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    spoiled_parts: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class RequestJournal:
    """The last entries, and totals since the last `clear`."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._entries: deque[JournalEntry] = deque(maxlen=MAX_ENTRIES)
        self._number = self._cleared = 0
        self.totals = JournalTotals()

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """All entries, oldest first, including requests in progress."""
        return tuple(self._entries)

    def last(self, count: int) -> list[JournalEntry]:
        return list(self._entries)[-count:] if count > 0 else []

    def clear(self) -> None:
        """Delete all entries and totals. Requests in progress are no longer counted."""
        self._entries.clear()
        self._cleared = self._number
        self.totals = JournalTotals()

    def begin(self, service: str) -> JournalEntry:
        self._number += 1
        entry = JournalEntry(self._number, self._clock.now(), service)
        self._entries.append(entry)
        self.totals.requests[service] += 1
        return entry

    def record_parts(self, entry: JournalEntry, parts: int) -> None:
        entry.parts += parts
        if self._counts(entry):
            self.totals.parts += parts

    def record_fault(self, entry: JournalEntry, kind: str) -> None:
        entry.faults += (kind,)
        if self._counts(entry):
            self.totals.faults[kind] += 1

    def finish(self, entry: JournalEntry, *, is_complete: bool) -> None:
        entry.whole = is_complete
        if not is_complete and self._counts(entry):
            self.totals.spoiled_parts += entry.parts

    def _counts(self, entry: JournalEntry) -> bool:
        # A request that began before `clear` is in no total.
        return entry.number > self._cleared


MAX_DOCUMENTS = 256


@dataclass(slots=True)
class RequestCounts:
    """Numbers of requests, and the last (document, variables) pairs of the query service."""

    graphql: int = 0
    tokens: int = 0
    documents: deque[tuple[str, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=MAX_DOCUMENTS))

    def record_query(self, document: str, variables: Mapping[str, Any]) -> None:
        self.graphql += 1
        self.documents.append((document, variables))

    def record_token(self) -> None:
        self.tokens += 1
