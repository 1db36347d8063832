"""May we spend it, and what did it cost? Parts by account and period (contract graphql.md §6).

Every call on an account with a limit holds its worst case in the store, so that all workers together stay within it,
and settles what came back. Of calls on accounts without a limit the worst case is recorded before anything is sent, so
that it becomes uncertain usage where the worker dies. What may have been billed, but was not
seen, is booked as doubtful and counts against the limit. When the service says that the parts are used up, it is
believed: nothing more is asked until they begin anew.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.gateway.quota import forecast
from proxy.gateway.quota.accounts import BillingCalendar, BillingPeriods, ChargedAccounts, QuotaAccount
from proxy.gateway.quota.budgets import Watch
from proxy.gateway.quota.exhaustion import WITHOUT_END_SECONDS, ExhaustedQuotas
from proxy.gateway.quota.ledger import Ledger, RequestUsage
from proxy.kit.clock import Clock
from proxy.kit.wording import counted
from proxy.stores.protocols import EntryUsage, LedgerEntry, QuotaLimit, ReservationRecord, Store
from proxy.telemetry.metrics import Metrics

LEASE_SECONDS = 10.0  # that the claims of a worker which is no longer heard are held
DAYS_KEPT = 2 * forecast.DAYS  # of each account; a clock that was ahead for some days takes none from the forecast
MONTHS_KEPT = 24
LOOK_SECONDS = 1.0  # between two looks at what others have spent

log = structlog.get_logger()


class QuotaStatus(NamedTuple):
    """Of the budget with the least left, or of the application where nothing is limited: parts used or in doubt, the
    limit (None: unlimited), whole seconds until it begins anew (None: never)."""

    used: int
    limit: int | None
    reset: int | None


class _Lines(NamedTuple):
    """What a call on two accounts is `booked` on, its `budgets`, and of what its client is `told`: of those, or where
    nothing is limited of the application."""

    booked: tuple[LedgerEntry, ...]
    budgets: tuple[QuotaLimit, ...]
    told: tuple[tuple[QuotaAccount, LedgerEntry], ...]


class Reservation:
    """One call's claim. It ends once, with `settle` or `abandon`; what is said after that changes nothing."""

    __slots__ = ("_accounts", "_claim", "_intent", "_open", "_parts", "_quota")

    def __init__(
        self, quota: "Quota", accounts: ChargedAccounts, parts: int, claim: str = "", intent: int | None = None
    ) -> None:
        self._quota = quota
        self._accounts = accounts
        self._parts = parts
        self._claim = claim
        self._intent = intent
        self._open = True

    async def settle(self, returned: int) -> None:
        """Book the parts that were returned. They are in the store when this returns, or kept until it is back."""
        if self._open:
            self._open = False
            await self._quota.book(self._accounts, returned, 0, self._claim, self._intent)

    async def abandon(self, error: BaseException) -> int:
        """Nothing of use came back. Where parts may have been billed all the same, the worst case is in doubt; gives
        the parts that are."""
        if not self._open:
            return 0
        self._open = False
        doubtful = self._parts if may_be_billed(error) else 0
        await self._quota.book(self._accounts, 0, doubtful, self._claim, self._intent)
        if isinstance(error, errors.QuotaExhausted):
            await self._quota.used_up(self._accounts, error)
        return doubtful


class Quota:
    """The accounts of all keys. `owner` is this process in the store: no other, before or after, has the same."""

    def __init__(
        self,
        store: Store,
        plans: Sequence[ChargedAccounts],
        owner: str,
        clock: Clock,
        metrics: Metrics,
        *,
        lease: float = LEASE_SECONDS,
        every: float = LOOK_SECONDS,
    ) -> None:
        self._store = store
        self._accounts = tuple(dict.fromkeys(account for plan in plans for account in plan.both))
        self._owner = owner
        self._clock = clock
        self._lease = lease
        self._every = every
        self._calendar = BillingCalendar(clock)
        self._ledger = Ledger(store, owner)
        self._closures = ExhaustedQuotas(store, clock)
        self._watch = Watch(store, metrics)
        self._numbers = count(1)
        self._dates = self._calendar.today()
        self._pruned: BillingPeriods | None = None
        self._lines: dict[ChargedAccounts, _Lines] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Learn how the ledger stands, and go on learning. A store that is away does not hold this up."""
        await self.look()
        self._task = asyncio.create_task(self._keep_looking(), name="quota")

    async def close(self) -> None:
        """Write what is left, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None
        await self._ledger.close()

    async def reserve(self, accounts: ChargedAccounts, parts: int) -> Reservation:
        """To hold `parts`, the most that a call can cost. Raises QuotaExhausted and StoreUnavailable."""
        self._closures.check(accounts.application)
        lines = self._of(accounts, self._calendar.today())
        if not parts:
            return Reservation(self, accounts, parts)
        if not lines.budgets:
            return await self._record(accounts, parts, lines)
        for account, line in lines.told:  # what is spent is known here: a flood of calls need not ask the store
            self._check(account, self._ledger.standing(line), parts)
        claim = self._claim(parts, lines)
        full = await self._ledger.hold(claim)
        if full is not None:
            await self._refuse(next(account for account, line in lines.told if line == full), full, parts)
        return Reservation(self, accounts, parts, claim.id)

    def standing(self, accounts: ChargedAccounts) -> QuotaStatus:
        """What a client is told with each reply. As of the last look, and what was spent here since."""
        now = self._clock.now()
        dates = self._calendar.at(now)
        told = self._of(accounts, dates).told
        used, account = self._spent(told[0]) if len(told) == 1 else min(map(self._spent, told), key=_left)
        return QuotaStatus(used, account.limit, account.reset(dates, now))

    async def book(self, accounts: ChargedAccounts, used: int, doubtful: int, claim: str, intent: int | None) -> None:
        """Onto the lines of both accounts, for their reservation. Raises nothing: what cannot be written is kept."""
        if not (used or doubtful or claim or intent is not None):
            return
        lines = self._of(accounts, self._calendar.today()).booked
        await self._ledger.book(RequestUsage(lines, used, doubtful, claim, intent))

    async def used_up(self, accounts: ChargedAccounts, error: errors.QuotaExhausted) -> None:
        """The service's word for an application, for its reservation."""
        try:
            await self._closures.close(accounts.application, self._calendar.today(), error)
        except errors.StoreUnavailable as trouble:
            self._ledger.lost(trouble)

    async def look(self) -> None:
        """One round: say that this worker lives, forget what is old, write what is left, learn what others did, tell
        who watches."""
        dates = self._calendar.today()
        lines = [account.line(dates) for account in self._accounts]
        try:
            await self._store.alive(self._owner, self._lease)
            await self._closures.look()
            if dates is not self._pruned:  # once a day
                await self._store.prune(DAYS_KEPT, MONTHS_KEPT)
                self._pruned = dates
        except errors.StoreUnavailable as error:
            self._ledger.lost(error)
        await self._ledger.look(lines)
        standings = [
            (account, self._ledger.standing(line)) for account, line in zip(self._accounts, lines, strict=True)
        ]
        self._watch.show(standings)
        try:
            await self._watch.warn(standings)
        except errors.StoreUnavailable as error:
            self._ledger.lost(error)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.look()
            except Exception as error:  # a look that fails must not be the last one
                log.error("ledger refresh failed", exc_info=error)

    async def _record(self, accounts: ChargedAccounts, parts: int, lines: "_Lines") -> Reservation:
        """Nothing is held. The journal is the quicker record; a store that is away holds nobody up."""
        intent = self._ledger.open_intent(parts, lines.booked)
        if intent is not None:
            return Reservation(self, accounts, parts, intent=intent)
        claim = self._claim(parts, lines)
        return Reservation(self, accounts, parts, claim.id if await self._ledger.record(claim) else "")

    def _claim(self, parts: int, lines: "_Lines") -> ReservationRecord:
        return ReservationRecord(
            f"{self._owner}-{next(self._numbers)}", self._owner, parts, lines.budgets, lines.booked
        )

    def _of(self, accounts: ChargedAccounts, dates: BillingPeriods) -> "_Lines":
        """The lines of a call, made once a day."""
        if dates is not self._dates:
            self._dates = dates
            self._lines.clear()
        lines = self._lines.get(accounts)
        if lines is None:
            lines = self._lines[accounts] = _lines(accounts, dates)
        return lines

    def _spent(self, told: tuple[QuotaAccount, LedgerEntry]) -> tuple[int, QuotaAccount]:
        account, line = told
        return self._ledger.spent(line), account

    def _check(self, account: QuotaAccount, state: EntryUsage, parts: int) -> None:
        """Raises QuotaExhausted where the parts are more than is left, whatever calls under way give back."""
        left = max(0, (account.limit or 0) - state.used - state.doubtful)
        if parts > left:
            reset = account.reset(self._calendar.today(), self._clock.now())
            raise errors.QuotaExhausted(
                f"{account.name} has {left} of {counted(account.limit or 0, 'part')} left ({state.line.period}), "
                f"and this request may cost {parts}",
                retry_after=WITHOUT_END_SECONDS if reset is None else reset,
            )

    async def _refuse(self, account: QuotaAccount, line: LedgerEntry, parts: int) -> None:
        """The reason why the store has no room: used, or held by calls under way, of which some will give back."""
        (state,) = await self._ledger.states([line])
        self._check(account, state, parts)
        raise errors.QuotaExhausted(
            f"what {account.name} has left of its {counted(account.limit or 0, 'part')} ({line.period}) is held by "
            f"requests under way, and this one may cost {parts}",
            retry_after=1,
        )


def may_be_billed(error: BaseException) -> bool:
    """Whether the service may have billed parts for a call that ended so. Of what is not known, the worst."""
    if isinstance(error, errors.ServerError):
        return error.may_be_billed
    return not isinstance(error, errors.BridgeError)


def _lines(accounts: ChargedAccounts, dates: BillingPeriods) -> _Lines:
    booked = accounts.application.lines(dates) + accounts.key.lines(dates)
    budgets = tuple(QuotaLimit(account.line(dates), account.limit or 0) for account in accounts.limited)
    told = accounts.limited or (accounts.application,)
    return _Lines(booked, budgets, tuple((account, account.line(dates)) for account in told))


def _left(spent: tuple[int, QuotaAccount]) -> int:
    used, account = spent
    return (account.limit or 0) - used
