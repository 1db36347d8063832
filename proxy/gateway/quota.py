"""May we spend it, and what did it cost? Parts by application and calendar month (contract graphql.md §6).

Every call reserves its worst case and settles what came back. When the service says that a month's parts are used up,
it is believed: nothing more is asked until the month ends, but for one try every ten minutes, because a plan can grow.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime

from proxy import errors
from proxy.kit.clock import Clock

PROBE_SECONDS = 600.0


@dataclass(slots=True)
class Account:
    """One application in one month: parts returned, and parts that calls under way may still return."""

    month: str
    returned: int = 0
    reserved: int = 0
    refused_until: float = 0.0
    refusal: str = ""


class Reservation:
    """One call's claim, held while its block runs; `returned` is set by whoever saw the answer."""

    __slots__ = ("_account", "_clock", "_parts", "returned")

    def __init__(self, account: Account, parts: int, clock: Clock) -> None:
        self._account = account
        self._parts = parts
        self._clock = clock
        self.returned = 0

    def __enter__(self) -> "Reservation":
        self._account.reserved += self._parts
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        account = self._account
        account.reserved -= self._parts
        account.returned += self.returned
        if self.returned:
            account.refusal = ""
        if isinstance(error, errors.PartLimitUsedUp):
            account.refused_until = self._clock.now() + PROBE_SECONDS
            account.refusal = error.message


class Quota:
    """The ledger of all applications, in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._month_ends = 0.0  # seconds since 1970
        self._month = ""
        self._accounts: dict[str, Account] = defaultdict(lambda: Account(self._month))

    def reserve(self, application: str, parts: int) -> Reservation:
        """To hold `parts` while a call is under way, then book what it returned. Raises PartLimitUsedUp."""
        account = self.account(application)
        self._check(account)
        return Reservation(account, parts, self._clock)

    def account(self, application: str) -> Account:
        """This month's account of an application."""
        if self._clock.now() >= self._month_ends:
            self._turn()
        return self._accounts[application]

    def _check(self, account: Account) -> None:
        """Refuse while the service does. Once in a while one call may try, and the others wait for what it meets."""
        if not account.refusal:
            return
        now = self._clock.now()
        if now < account.refused_until:
            raise errors.PartLimitUsedUp(account.refusal, retry_after=errors.seconds_to_next_month(now))
        account.refused_until = now + PROBE_SECONDS

    def _turn(self) -> None:
        """A new month: every account begins again; calls under way are booked in the month they end in."""
        now = self._clock.now()
        self._month = datetime.fromtimestamp(now, UTC).strftime("%Y-%m")
        self._month_ends = now + errors.seconds_to_next_month(now)
        for account in self._accounts.values():
            account.month, account.returned, account.refusal = self._month, 0, ""
