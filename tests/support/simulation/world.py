"""The world of a simulation: time, processes, faults, and the invariants that hold after every step."""

import heapq
import itertools
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import structlog

from proxy.kit.windows import Window
from proxy.upstream.auth import token_requests
from support.simulation.plan import KEYS, Event, Plan
from support.simulation.process import GRACE_SECONDS, Process
from support.simulation.stores import SLOW_SECONDS, CacheContent, SimulatedJournal
from support.simulation.upstream import Upstream

STEP_SECONDS = 0.000_02  # that the processor takes between two awaits
LEAD_SECONDS, REST_SECONDS = 1.2, 2.5  # before and after a burst of events, in which every second is simulated
RECOVERY_SECONDS = 45.0  # after which back-off and circuit breakers have ended
FAULTY = 0.7  # share of operations that fail during a fault
MEMORY = Path("/dev/shm")
RECORDED = """
    SELECT account, sum(parts) FROM (
        SELECT account, used + uncertain AS parts FROM ledger WHERE period = 'lifetime'
        UNION ALL SELECT entries ->> 0 ->> 0, parts FROM reservations WHERE NOT uncertain
    ) GROUP BY 1"""
RATE_LIMITS = token_requests.RATE_LIMITS


class Outcome(NamedTuple):
    """Result of a simulation: its violations, the simulated seconds, and a digest of all that happened."""

    violations: list[str]
    seconds: float
    steps: int


class World:
    """Processes on one machine, whose clocks the plan moves."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed)
        self.store_path, self.uids = folder / "state.sqlite", folder / "uids"
        self.uids.write_text("{}")
        self.true = plan.start
        self.offset = self.suspended = 0.0
        self.steps = 0
        self.current: dict[int, Process] = {}
        self.processes: list[Process] = []
        self.journals: list[SimulatedJournal] = []
        self.cache = CacheContent()
        self.upstream = Upstream(self)
        self.violations: list[str] = []
        self.excused_until = 0.0 if plan.is_calm else float("-inf")
        self.has_store_fault = self.has_clock_fault = False
        self.windows = [Window(count, each.seconds) for count, each in zip(plan.token_limits, RATE_LIMITS, strict=True)]
        self._grants: list[float] = []
        self._faults: dict[str, tuple[str, float]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._ledger = sqlite3.connect(self.store_path)

    def now(self) -> float:
        return self.true + self.offset

    def awake(self) -> float:
        """Time of event loops, which stops while the machine is suspended."""
        return self.true - self.suspended

    def month(self, at: float) -> str:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back in a while, whatever process lives then."""
        heapq.heappush(self._timers, (self.true + seconds, next(self._numbers), callback))

    def fault(self, name: str) -> str:
        """Return the fault of an operation, "" for none."""
        kind, until = self._faults.get(name, ("", 0.0))
        return kind if self.true < until and self.rng.random() < FAULTY else ""

    def violate(self, message: str) -> None:
        self.violations.append(f"{self.true - self.plan.start:.3f} s: {message}")

    def excuse(self, seconds: float = 0.0) -> None:
        """Let parts whose request is in flight now be paid for again."""
        self.excused_until = max(self.excused_until, self.true + seconds)

    def start(self, slot: int, version: str = "1") -> None:
        """Start a process, which takes a slot over when it is ready."""
        self.processes.append(Process(self, slot, next(self._numbers), version))

    def buried(self, process: Process) -> None:
        """Forget a process that has ended; one that has died is started again."""
        self.processes.remove(process)
        if process.is_dead:
            self.excuse(5.0)
            if self.current.get(process.slot) is process:
                del self.current[process.slot]
                self.after(self.rng.uniform(0.05, 2), lambda: self.start(process.slot, process.version))

    # invariants

    def audit(self) -> None:
        """Check that every part that was billed is on record, so that no kill loses it."""
        recorded: Counter[str] = sum((journal.covered for journal in self.journals), Counter())
        recorded.update(dict(self._ledger.execute(RECORDED).fetchall()))
        for application, billed in self.upstream.billed.items():
            if application != "limited" and self.has_store_fault and not self.plan.has_journal:
                continue  # quota.md, Crashes: without a journal their cost waits in memory
            if billed > recorded[application]:
                self.violate(f"{billed} parts of {application} are billed, {recorded[application]} are on record")

    def grant(self, process: Process) -> None:
        """Note that the store allows a token request; check all windows."""
        process.grants += 1
        self._grants.append(self.true)
        for window in self.windows:
            count = sum(at > self.true - window.seconds + 0.01 for at in self._grants)
            if count > window.count:
                self.violate(f"{count} token requests in {window.seconds} s, allowed are {window.count}")

    def check_tokens(self, process: Process) -> None:
        """Check that a token request was allowed by the store, unless that is in trouble."""
        process.grants -= 1
        if process.grants < 0 and not self.has_store_fault:
            self.violate(f"{process.name} requests a token that was not counted")

    def check_result(self, number: str, parts: int, items: list[dict[str, str]], suspended: float) -> None:
        """Check that a client gets the parts that it requested, none older than a day by an undisturbed clock.

        `suspended`: of the request's start. While the machine is suspended a request waits with its result.
        """
        if [item["mpn"] for item in items] != [number] * parts:
            self.violate(f"{number} was requested, and {items} came")
        age = max(self.true - float(item["short_description"]) for item in items)
        if age > 86_400 + GRACE_SECONDS + self.suspended - suspended and not self.has_clock_fault:
            self.violate(f"{number} is {age:.0f} s old")

    # the plan

    def play(self) -> None:
        """Carry the plan out; then let all faults end, and check what must be true in the end."""
        for slot in range(self.plan.slots):
            self.start(slot)
        for event in sorted(self.plan.events):
            at = self.plan.start + event.at
            if at - self.true > LEAD_SECONDS + 2 * GRACE_SECONDS:
                self._rest()
                self.true = at - LEAD_SECONDS
            self.run(at)
            if self.violations:
                return
            self.happen(event)
        self._rest()
        self._faults.clear()
        for slot in range(self.plan.slots):
            self.start(slot)  # settles what the dead have left
        self.run(self.true + REST_SECONDS)
        self.true += RECOVERY_SECONDS
        self.run(self.true + REST_SECONDS)
        for process in self.current.values():
            for application, keys in KEYS.items():
                process.request(f"{application} {keys[0]} P0 P1", must_succeed=True)
        self._rest()
        self.true += 90_000
        self.run(self.true + REST_SECONDS)
        if not self.violations:
            self._check_end()

    def happen(self, event: Event) -> None:
        """Let an event happen."""
        process = self.current.get(event.slot)
        if event.kind in ("store", "cache", "upstream", "identity", "disk"):
            self._faults[event.kind] = event.detail, self.true + event.number
            self.excuse(event.number + 60)
            self.has_store_fault |= event.kind in ("store", "disk")
        elif event.kind == "step":
            self.offset += event.number
            self._grants.clear()
            self.has_clock_fault = True
            self.excuse(5)  # a step forward ends leases
        elif event.kind == "suspend":
            self.true += event.number
            self.suspended += event.number
            self.excuse(60)
        elif event.kind == "revoke":
            self.upstream.revoke()
        elif event.kind == "start":
            self.start(event.slot, event.detail)
        elif process is not None:
            self._happen_to(process, event)

    def _happen_to(self, process: Process, event: Event) -> None:
        if event.kind == "request":
            process.request(event.detail)
        elif event.kind == "kill":
            process.steps_left, process.is_torn = event.number, event.detail == "torn"
        elif event.kind == "reload":
            process.reload()
        else:
            process.cancel(event.detail)
            self.excuse(60)

    def run(self, until: float) -> None:
        """Run all processes until a moment."""
        while not self.violations:
            ready = [process for process in self.processes if process.loop.is_ready]
            if ready:
                self.steps += 1
                self.true += STEP_SECONDS
                (self.rng.choice(ready) if len(ready) > 1 else ready[0]).step()
                continue
            due = min((process.loop.due for process in self.processes), default=until) + self.suspended
            if self._timers and self._timers[0][0] <= min(due, until):
                at, _, callback = heapq.heappop(self._timers)
                self.true = max(self.true, at)
                callback()
                continue
            for process in self.processes:
                process.check()
            if due >= until:
                self.true = max(self.true, until)
                return
            self.true = due + 1e-9

    def _rest(self) -> None:
        """Run until nothing is in flight. Then a leap of time follows, in which periodic work is done once."""
        quiet = max((until for _, until in self._faults.values()), default=0.0) + SLOW_SECONDS
        self.run(max(self.true, quiet) + REST_SECONDS)
        for process in self.processes:
            process.steps_left = float("inf")
        while (self._timers or any(process.requests for process in self.processes)) and not self.violations:
            self.run(self.true + REST_SECONDS)

    def _check_end(self) -> None:
        if set(self.current) != set(range(self.plan.slots)):
            self.violate("not every process is back")
        rows = self._ledger.execute("SELECT account, period, used, uncertain FROM ledger").fetchall()
        ledger = {(account, period): (used, uncertain) for account, period, used, uncertain in rows}
        (reserved,) = self._ledger.execute("SELECT coalesce(sum(parts), 0) FROM reserved").fetchone()
        if reserved:
            self.violate(f"{reserved} parts are reserved for ever")
        for application, billed in self.upstream.billed.items():
            used, uncertain = ledger.get((application, "lifetime"), (0, 0))
            if used > billed:
                self.violate(f"{used} parts of {application} are booked as used, {billed} are billed")
            if used + uncertain < billed and (
                application == "limited" or self.plan.has_journal or not self.has_store_fault
            ):
                self.violate(f"{billed} parts of {application} are billed, {used} used and {uncertain} uncertain")
            if self.plan.is_certain and uncertain:
                self.violate(f"{uncertain} parts of {application} are uncertain, though nothing went wrong")
        now = self.month(self.now())
        used, uncertain = ledger.get(("limited", now), (0, 0))
        if uncertain:
            self.violate(f"{uncertain} parts of limited are uncertain after a reconciliation")
        if now == self.month(self.true) and used < self.upstream.counted["limited"][now]:
            self.violate(f"{used} parts of limited are used after a reconciliation")


def simulate(plan: Plan) -> Outcome:
    """Carry a plan out."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    unexpected: list[str] = []

    def drop(_: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        if method == "error" and event["event"] == "background task failed":
            unexpected.append(f"{event['task']}: {event['exc_info']!r}")
        raise structlog.DropEvent

    structlog.configure(processors=[drop])
    try:
        world = World(plan, folder)
        with mock.patch.object(token_requests, "RATE_LIMITS", tuple(world.windows)):
            world.play()
            for process in [*world.processes]:
                process.die()
                process._bury()
        return Outcome(world.violations + unexpected, world.true - plan.start, world.steps)
    finally:
        structlog.reset_defaults()
        shutil.rmtree(folder)


def shortest(plan: Plan) -> Plan:
    """Return a plan that fails without the events that its failure does not need."""
    size = max(1, len(plan.events) // 2)
    while True:
        start = 0
        while start < len(plan.events):
            fewer = plan._replace(events=plan.events[:start] + plan.events[start + size :])
            if simulate(fewer).violations:
                plan = fewer
            else:
                start += size
        if size == 1:
            return plan
        size //= 2
