"""What is shared, and what can be done with it: tokens, the token requests made, the ledger of parts, and notes.

Each operation is atomic, over all workers and machines that use the same store. Times are seconds since 1970, by the
clock that the store was made with. Everything here raises errors.StoreUnavailable where the store cannot be reached.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from proxy.kit.windows import Window

DAY = 10  # characters of a period that is a day
MONTH = 7  # of one that is a month


class LedgerEntry(NamedTuple):
    """One counter of the ledger: an account (`demo`, `demo/erp`) in a period (`2026-11-21`, `2026-11`, `lifetime`)."""

    account: str
    period: str


class QuotaLimit(NamedTuple):
    """The most parts that a line may come to."""

    line: LedgerEntry
    limit: int


class ReservationRecord(NamedTuple):
    """The most parts that a request can cost, held against all its budgets until it is settled.

    `owner` is the worker's id, `lines` are those that the request is booked on. A claim without budgets holds no
    quota: it records what a request may cost, so that a worker that dies leaves no unbooked usage behind.
    """

    id: str
    owner: str
    parts: int
    budgets: tuple[QuotaLimit, ...]
    lines: tuple[LedgerEntry, ...]


class UsageIncrement(NamedTuple):
    """What goes onto a line: parts that were returned, and parts that may have been."""

    line: LedgerEntry
    used: int
    doubtful: int


class Settlement(NamedTuple):
    """What some calls of an owner came to: their claims are given back, their parts go onto the lines.

    An owner counts its settlements from 1 in `sequence`, and hands them in in that order: what is sent again, because
    an answer was lost on the way, is booked once.
    """

    owner: str
    sequence: int
    claims: tuple[str, ...]
    bookings: tuple[UsageIncrement, ...]


class EntryUsage(NamedTuple):
    """A line of the ledger: parts returned, parts that may have been, parts that calls under way hold."""

    line: LedgerEntry
    used: int
    doubtful: int
    reserved: int


class ExhaustedQuota(NamedTuple):
    """The service's word that an account's parts are used up, until a moment."""

    account: str
    until: float
    reason: str


class Journal(Protocol):
    """Where an owner notes what is in its next settlements, so that it outlives the process before the store has it.

    It also holds the intents of the owner: the most parts that each request under way may cost. Those that are open
    when the owner dies are booked as uncertain usage by whoever opens the store next.
    """

    def open_intent(self, parts: int, lines: Sequence[LedgerEntry]) -> int:
        """Record that a request is about to be sent, and return its number. Raises OSError, and then it is not."""

    def close_intent(self, number: int) -> None:
        """The request is booked."""

    def note(self, sequence: int, lines: Sequence[LedgerEntry], used: int, doubtful: int) -> None:
        """These parts are in the settlement of that number. Raises OSError, and then they are not noted."""

    def settled(self, sequence: int) -> None:
        """The store has the settlement of that number."""

    def close(self) -> None:
        """Leave what is not settled to whoever opens the store next."""


class Store(Protocol):
    """One store. `lock` is a lease: it ends by itself, so that a dead worker holds nobody up."""

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        """0.0: a request is taken from every window. Else none is: the seconds until it would be."""

    async def token(self, key: str) -> tuple[str, float] | None:
        """The token kept for `key` and its end; None where there is none or it has ended."""

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        """Keep a token until its end."""

    async def drop_token(self, key: str, token: str) -> None:
        """Forget this very token; a newer one stays."""

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        """Whether `owner` has the lock now, for so long. Who has it already has it anew."""

    async def unlock(self, name: str, owner: str) -> None:
        """Give the lock back, if it is still the owner's."""

    async def reserve(self, claims: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        """For each claim None where it is held, or the first line that has no room for it. In the order given.

        A claim that is held already is held once.
        """

    async def settle(self, settlement: Settlement) -> None:
        """Book it, and give its claims back. A claim that has become uncertain usage is taken off that again."""

    def journal(self, owner: str) -> Journal | None:
        """A place beside the store that is quicker than it and as lasting; None where there is none."""

    async def adjust(self, line: LedgerEntry, used: int, doubtful: int) -> None:
        """The service's own count: a line's parts used are at least so many, and so many are in doubt no longer."""

    async def alive(self, owner: str, seconds: float) -> None:
        """Extend the lease of the owner's claims. Claims of owners whose lease has ended become uncertain usage.

        An owner is heard once before it claims anything.
        """

    async def check_writable(self) -> None:
        """Write to the store, to learn whether it can be written."""

    async def states(self, lines: Sequence[LedgerEntry]) -> list[EntryUsage]:
        """How these lines stand, in the order given."""

    async def usage(self) -> list[EntryUsage]:
        """Every line that something was booked on, by account and period."""

    async def prune(self, days: int, months: int) -> None:
        """Forget lines of the past: of each account those of its last `days` days and `months` months stay, counted by
        what was booked and not by the clock, and its lifetime. So does a line that calls under way hold parts of."""

    async def close_account(self, closure: ExhaustedQuota) -> None:
        """Remember that an account is closed; the last word counts."""

    async def reopen(self, account: str) -> None:
        """Forget it."""

    async def closures(self) -> list[ExhaustedQuota]:
        """The accounts that are closed at this moment."""

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        """Keep what an owner last noted of a kind, until it is dropped."""

    async def notes(self, kind: str) -> dict[str, str]:
        """The notes of a kind, by their owners."""

    async def drop_notes(self, kind: str) -> None:
        """Forget every note of a kind."""

    async def aclose(self) -> None:
        """Let go of connections and files."""
