"""Parts that a run may spend. The worst case of a call is held before it is asked, its real cost booked afterwards."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

import msgspec

from proxy.compare.redaction import Redaction
from proxy.compare.requests import V3Request
from proxy.compare.responses import ComparedSide, SideResponse
from proxy.upstream.replay import RecordedGraphQLResponse, ResponseRecorder


class ComparisonBudget:
    """`limit` None is no limit; `spent` is what a run that goes on has spent before."""

    def __init__(self, limit: int | None, spent: int = 0) -> None:
        self.limit = limit
        self.spent = spent
        self._held = 0
        self._changed = asyncio.Condition()

    async def hold(self, parts: int) -> bool:
        """Hold the most that a call can cost. False where that can never be covered; while others that are under way
        may yet cost less than they hold, that is waited for."""
        async with self._changed:
            while not self._covers(parts):
                if not self._held or not self._could_cover(parts):
                    return False
                await self._changed.wait()
            self._held += parts
            return True

    async def settle(self, held: int, cost: int) -> None:
        """The call is over: what it held is free, and what it cost is spent."""
        async with self._changed:
            self._held -= held
            self.spent += cost
            self._changed.notify_all()

    def _covers(self, parts: int) -> bool:
        return self.limit is None or not parts or self.spent + self._held + parts <= self.limit

    def _could_cover(self, parts: int) -> bool:
        return self.limit is None or self.spent + parts <= self.limit


class DifferenceFinder(Protocol):
    """What says whether two answers differ in anything that counts."""

    def differences(self, call: V3Request, old: SideResponse, new: SideResponse) -> Sequence[Any]:
        """What is left of them when rules are applied."""


class Sides(NamedTuple):
    """Who is asked. A side is None where there is nothing to compare with: then answers are only recorded."""

    old: ComparedSide | None
    new: ComparedSide | None


class Exchange(NamedTuple):
    """What was said to one call. `cost` is in parts, over all answers of the new side; `trouble` why there is nothing
    to compare, and `of` the side that has it; `notes` what the GraphQL service said for the freshest new answer.
    """

    old: SideResponse | None = None
    new: SideResponse | None = None
    old_again: SideResponse | None = None
    new_again: SideResponse | None = None
    cost: int = 0
    trouble: str | None = None
    of: ComparedSide | None = None
    notes: tuple[RecordedGraphQLResponse, ...] = ()

    @property
    def freshest(self) -> tuple[SideResponse | None, SideResponse | None]:
        """The last answer of each side."""
        return self.old_again or self.old, self.new_again or self.new


class OutOfBudgetError(Exception):
    """What is left of the parts does not cover the call."""


class Exchanger:
    """Asks. `worst` says what a call can cost at most, `paying` is told (by its id) before that may be spent."""

    def __init__(
        self,
        sides: Sides,
        *,
        budget: ComparisonBudget,
        worst: Callable[[V3Request], int],
        paying: Callable[[str, int], None],
        redaction: Redaction,
        judge: DifferenceFinder | None = None,
        tape: ResponseRecorder | None = None,
    ) -> None:
        self._old, self._new = sides
        self._budget = budget
        self._worst = worst
        self._paying = paying
        self._redaction = redaction
        self._judge = judge
        self._tape = tape
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    async def exchange(self, call: V3Request, *, twice: bool = False) -> Exchange:
        """Ask both sides. Raises OutOfBudgetError before anything is spent."""
        held = await self._hold(call)
        try:
            old = await self._ask(self._old, call)
        except BaseException:
            await self._budget.settle(held, 0)
            raise
        if old is not None and old.trouble:
            await self._budget.settle(held, 0)
            return Exchange(old, trouble=f"the old side {old.trouble}", of=self._old)
        if self._new is None:
            return Exchange(old)
        new, cost, notes = await self._pay(call, held)
        found = Exchange(old, new, cost=cost, notes=notes)
        if new.trouble:
            return found._replace(trouble=f"the new side {new.trouble}", of=self._new)
        if old is None or self._judge is None:
            return found
        return await self._again(self._judge, call, found, (old, new), twice)

    async def _again(
        self,
        judge: DifferenceFinder,
        call: V3Request,
        found: Exchange,
        pair: tuple[SideResponse, SideResponse],
        twice: bool,
    ) -> Exchange:
        """What asking again brings. Trouble on the way leaves what was there."""
        old, new = pair
        if self._old is None or not self._old.live:
            return found
        differ = bool(judge.differences(call, old, new))
        if not (differ or twice):
            return found
        old_again = await self._ask(self._old, call)
        if old_again is None or old_again.trouble:
            return found
        found = found._replace(old_again=old_again)
        if differ and judge.differences(call, old_again, new) and judge.differences(call, old, old_again):
            return await self._once_more(call, found)
        return found

    async def _once_more(self, call: V3Request, found: Exchange) -> Exchange:
        """The new side's answer of now, if it can be afforded."""
        try:
            held = await self._hold(call)
        except OutOfBudgetError:
            return found
        new_again, cost, notes = await self._pay(call, held)
        found = found._replace(cost=found.cost + cost)
        return found if new_again.trouble else found._replace(new_again=new_again, notes=notes)

    async def _hold(self, call: V3Request) -> int:
        worst = self._worst(call) if self._new is not None else 0
        if not await self._budget.hold(worst):
            raise OutOfBudgetError
        return worst

    async def _pay(self, call: V3Request, held: int) -> tuple[SideResponse, int, tuple[RecordedGraphQLResponse, ...]]:
        """The new side's answer, its cost, and what was noted of it. What cannot be known is booked as the worst."""
        assert self._new is not None  # noqa: S101 - asked only where there is one
        cost = held
        try:
            if held:
                self._paying(call.id, held)
            request_id = self._id()
            reply = await self._new.ask(call, request_id)
            notes = self._tape.take(request_id) if self._tape else ()
            cost = _cost(reply, held)
            return self._redacted(reply), cost, notes
        finally:
            await self._budget.settle(held, cost)

    async def _ask(self, side: ComparedSide | None, call: V3Request) -> SideResponse | None:
        return None if side is None else self._redacted(await side.ask(call, self._id()))

    def _redacted(self, reply: SideResponse) -> SideResponse:
        """Sides answer with the keys that they were asked with; that is no difference, and nobody is to see them."""
        body = self._redaction.body(reply.body)
        trouble = None if reply.trouble is None else self._redaction.text(reply.trouble)
        if (body, trouble) == (reply.body, reply.trouble):
            return reply
        return msgspec.structs.replace(reply, body=body, trouble=trouble)

    def _id(self) -> str:
        return f"{self._process}-{next(self._numbers)}"


def _cost(reply: SideResponse, worst: int) -> int:
    """Parts that an answer has cost: what it says, nothing for a refusal, else the worst that it can be."""
    return worst if reply.price is None else reply.price
