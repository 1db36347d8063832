"""What the sandbox was asked, request by request: both services, what it cost, which fault struck, what came of it.

Written by whoever handles a request, read through `Sandbox.journal` and /admin/journal. It holds no token, no secret
and no value of a variable. Bounded: the oldest entries go, the totals count on.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from proxy.kit import clock as clocks

KEPT = 50_000


@dataclass(slots=True)
class Entry:
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
class Totals:
    """Sums over all requests. `spoiled_parts` were billed in answers that did not arrive whole."""

    requests: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    spoiled_parts: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class Journal:
    """The last `kept` entries, and totals since the last `clear`."""

    def __init__(self, clock: clocks.Clock, kept: int = KEPT) -> None:
        self._clock = clock
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._number = self._cleared = 0
        self.totals = Totals()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Oldest first; those under way are among them."""
        return tuple(self._entries)

    def last(self, count: int) -> list[Entry]:
        """The last `count` entries, oldest first."""
        return list(self._entries)[-count:] if count > 0 else []

    def clear(self) -> None:
        """Forget everything. What requests that are under way still do counts nowhere."""
        self._entries.clear()
        self._cleared = self._number
        self.totals = Totals()

    def open(self, service: str) -> Entry:
        """The entry of a request that has come in."""
        self._number += 1
        entry = Entry(self._number, self._clock.now(), service)
        self._entries.append(entry)
        self.totals.requests[service] += 1
        return entry

    def bill(self, entry: Entry, parts: int) -> None:
        """The answer that was made has so many parts."""
        entry.parts += parts
        if self._counts(entry):
            self.totals.parts += parts

    def strike(self, entry: Entry, kind: str) -> None:
        """A fault of this kind took effect."""
        entry.faults += (kind,)
        if self._counts(entry):
            self.totals.faults[kind] += 1

    def close(self, entry: Entry, *, whole: bool) -> None:
        """The request is over."""
        entry.whole = whole
        if not whole and self._counts(entry):
            self.totals.spoiled_parts += entry.parts

    def _counts(self, entry: Entry) -> bool:
        return entry.number > self._cleared
