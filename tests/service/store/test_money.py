"""Property test of the store: what it counts is never less than what was billed, whatever happens between any two of
its statements.

Two processes use one store. Their callers begin, send to an upstream that bills, and finish: late, twice, never. Clocks
step, months end, processes die. After each step the store shows what a model of it shows (money_model.py); after a
death, what the model shows with or without the operation.
"""

import dataclasses
import itertools
import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from service.store.money_model import Model, Pair
from service.store.store_process import DiedError, StoreProcess

from proxy.store.protocol import LIFETIME, Account, Begin, Finish, Hit, Reserved, Result, Want

if TYPE_CHECKING:
    from support.redis_server import RedisServer

MEMORY = "/dev/shm"
HOUR, DAY = 3_600.0, 86_400.0
START = 1_796_083_180.0  # 2026-11-30 23:59:40 UTC
STEPS = (1, 20, 20, 20, 290, 400, 6 * HOUR, 18 * HOUR, DAY, 31 * DAY, -30, -400, -7 * HOUR, -2 * DAY)
EVENTS = (*["begin"] * 8, *["finish"] * 8, *["expire"] * 3, *["sweep"] * 2, "begin_again", "send", "kill", "close")
EVENTS += ("end_worker", "forget", *["set_usage"] * 2, "finish_unknown")
SECONDS = 35.5  # of a reservation; clocks step by whole seconds, so that no time is exactly a deadline
LISTS = {
    "a": ("u1", "u2", "u3", "u4"),
    "b": ("u2", "u3", "u1"),
    "none": (),
    "free": ("u4",),
    "by uid": ("u1",),
    "by id": ("u2",),
}
PARTS = {"a": 1, "b": 2, "none": 1, "free": 0, "by uid": 1, "by id": 1}  # that an element costs
SCOPES = ("erp", "shop")


def want(key: str, end: int) -> Want:
    """Return a want; two of the keys name a part."""
    if key not in ("by uid", "by id"):
        return Want(key, end, PARTS[key])
    return Want(key, 1, PARTS[key], part="u1" if key == "by uid" else "id of u2")


Draw = Callable[[st.SearchStrategy[Any]], Any]
processes, scopes = st.integers(0, 1), st.sampled_from(("erp", "erp", "erp", "shop"))
limits = st.sampled_from((None, None, 8, 20))
wants = st.builds(want, st.sampled_from([*LISTS]), st.integers(1, 4))
asked = st.lists(st.tuples(scopes, st.integers(0, 3), wants), min_size=1, max_size=4)
mostly = st.sampled_from((True, True, True, True, False))
deaths = st.sampled_from((*[0] * 90, *range(1, 19)))  # before which statement of an operation


@dataclasses.dataclass
class Request:
    """Reservation as its caller knows it, with the beginning that is stored."""

    process: int
    begin: Begin
    deadline: float
    stored: Result | None
    billed: int | None = None
    finish: Finish | None = None

    @property
    def parts(self) -> int:
        return self.begin.want.parts * (self.begin.want.end - self.start)

    @property
    def start(self) -> int:
        return self.stored.asked if self.stored else 0

    @property
    def cost(self) -> int:
        """What the upstream bills: the elements that its list has."""
        return self.begin.want.parts * len(LISTS[self.begin.want.key][self.start : self.begin.want.end])


class MoneyMachine(RuleBasedStateMachine):
    """Two processes and an upstream; the store in a new file, or in a Redis server that is emptied."""

    redis: "ClassVar[RedisServer | None]" = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="v3bridge-", dir=MEMORY if Path(MEMORY).is_dir() else None)
        if self.redis:
            self.redis.empty()
        self.now = START
        self.models, self.is_changed = [Model()], True
        self.processes: list[StoreProcess | None] = [None, None]
        self.workers = ["", ""]
        self.dead: list[str] = []
        self.numbers = itertools.count(1)
        self.requests: list[Request] = []
        self.billed: Counter[Pair] = Counter()

    def teardown(self) -> None:
        for process in filter(None, self.processes):
            try:
                process.close(self.now)
            except Exception:
                process.kill()
                raise
        self.folder.cleanup()

    def step(self, number: int, name: str, *arguments: Any, die_at: int = 0) -> Any:
        """Call an operation in a process, which may die. Only models that say the same go on."""
        process, self.is_changed = self.process(number), True
        after = pickle.loads(pickle.dumps(self.models))
        for model in after:
            model.worker, model.now = self.workers[number], self.now
        said = [getattr(model, name)(*arguments) for model in after]
        try:
            reply = process.call(self.now, name, *arguments, die_at=die_at)
        except DiedError:
            self.models += [model for model in after if model not in self.models]
            self.lose(number)
            return None
        assert reply in said, f"{name} returned\n{reply}, expected\n{said}"
        self.models = [model for model, its in zip(after, said, strict=True) if its == reply]
        return reply

    def process(self, number: int) -> StoreProcess:
        """Return a process; start it if it died. The only one with a file ends all reservations."""
        process = self.processes[number]
        if process is None:
            self.workers[number] = f"worker {next(self.numbers)}"
            address = self.redis.url if self.redis else f"{self.folder.name}/store.sqlite"
            process = StoreProcess.open(self.now, address, self.workers[number])
            for model in () if self.redis or any(self.processes) else self.models:
                model.end_worker(None)
            self.processes[number], self.is_changed = process, True
        return process

    def lose(self, number: int) -> None:
        """Forget what only a process knew that has ended."""
        self.processes[number], self.is_changed = None, True
        self.dead.append(self.workers[number])
        self.requests = [each for each in self.requests if each.process != number]

    def accounts(self, scope: str, month: int | None = None, lifetime: int | None = None) -> list[Account]:
        day = time.strftime("%Y-%m-%d", time.gmtime(self.now))
        return [Account(scope, day[:7], month), Account(scope, day), Account("key", LIFETIME, lifetime)]

    def chosen(self, draw: Draw) -> Request | None:
        return draw(st.sampled_from(self.requests)) if self.requests else None

    def bill(self, scope: str, parts: int) -> None:
        for account in self.accounts(scope):
            self.billed[account.account, account.period] += parts

    @rule(event=st.sampled_from(EVENTS), number=processes, data=st.data())
    def happens(self, event: str, number: int, data: st.DataObject) -> None:
        """One rule, because of several Hypothesis leaves some out of most runs."""
        getattr(self, event)(number, data.draw)

    def begin(self, number: int, draw: Draw) -> None:
        """Begin, once or twice; mostly send, and sometimes finish at once."""
        most, hours, die_at = draw(st.tuples(limits, limits)), draw(st.sampled_from((23.5, 24))), draw(deaths)
        begins = []
        for scope, features, its in draw(asked):
            accounts, fresh_from = self.accounts(scope, *most), self.now - hours * HOUR
            id = f"{next(self.numbers):032x}"
            begins.append(Begin(id, scope, features, its, accounts, fresh_from, SECONDS))
        replies = self.step(number, "begin", begins, die_at=die_at)
        if replies and draw(st.booleans()):
            replies = self.step(number, "begin", begins)
        counts = {(each.account, each.period): sum(each[2:]) for each in self.models[0].usage()}
        for begin, outcome in zip(begins, replies or [], strict=False):
            if not isinstance(outcome, Reserved):
                continue
            request = Request(number, begin, self.now + SECONDS, outcome.stored)
            for account, period, limit in begin.accounts if request.parts else ():
                assert limit is None or counts[account, period] <= limit
            self.requests.append(request)
            if draw(mostly):
                self.send_request(request)
            if not draw(mostly):
                self.finish_request(request, draw)

    def begin_again(self, number: int, draw: Draw) -> None:
        """Begin what has begun once more, later; nobody does when its end was known long ago."""
        request = self.chosen(draw)
        if request and (request.finish is None or self.now < request.deadline):
            [outcome] = self.step(request.process, "begin", [request.begin])
            if isinstance(outcome, Reserved):
                assert dataclasses.replace(request, stored=outcome.stored).parts <= request.parts

    def send(self, number: int, draw: Draw) -> None:
        if request := self.chosen(draw):
            self.send_request(request)

    def send_request(self, request: Request) -> None:
        """Who sends looks at its deadline, and whether the periods are still those of the reservation."""
        periods = [account.period for account in request.begin.accounts]
        if request.billed is not None or request.finish or self.now > request.deadline:
            return
        if periods == [account.period for account in self.accounts(request.begin.scope)]:
            request.billed = request.cost
            self.bill(request.begin.scope, request.billed)

    def finish(self, number: int, draw: Draw) -> None:
        """Finish a request, or send its finish once more."""
        if request := self.chosen(draw):
            self.finish_request(request, draw)
            if draw(st.booleans()) and self.processes[request.process]:
                self.finish_request(request, draw)

    def finish_request(self, request: Request, draw: Draw) -> None:
        if request.finish is not None:
            request.finish = request.finish._replace(is_repeated=True)
        else:
            begin, sent, answered = request.begin, request.billed is not None, draw(mostly)
            results = [self.result(begin, request.stored)] if sent and answered and draw(mostly) else []
            used, uncertain = (request.billed or 0, 0) if answered else (0, request.parts if sent else 0)
            accounts = self.accounts(begin.scope)
            request.finish = Finish(begin, begin.features, results, accounts, used, uncertain)
        self.step(request.process, "finish", [request.finish], die_at=draw(deaths))

    def result(self, begin: Begin, stored: Result | None) -> Result:
        """Return what the upstream has for a want, with the beginning that is stored."""
        wanted = begin.want
        uids = LISTS[wanted.key]
        items = tuple(Hit(uid, f"number of {uid}", f"{wanted.key} has {uid}") for uid in uids[: wanted.end])
        before = stored.bodies if stored else ()
        new = [f"{each.uid} {begin.features} {begin.id}".encode() for each in items[len(before) :]]
        ids = tuple(f"id of {each.uid}" for each in items)
        fetched = stored.fetched if stored else self.now
        return Result(wanted.key, wanted.end, len(uids), items, (*before, *new), ids, wanted.key.encode(), fetched)

    def finish_unknown(self, number: int, draw: Draw) -> None:
        scope = draw(scopes)
        self.bill(scope, 1)
        begin = Begin(f"{next(self.numbers):032x}", scope, 3, Want("b", 1), (), 0, SECONDS)
        results = [self.result(begin, None)]
        self.step(number, "finish", [Finish(begin, 3, results, self.accounts(scope), 1, 0)])

    def expire(self, number: int, draw: Draw) -> None:
        self.sweep(number, draw, SECONDS + 0.5)

    def sweep(self, number: int, draw: Draw, seconds: float | None = None) -> None:
        """Nobody finishes a day later."""
        self.now += draw(st.sampled_from(STEPS)) if seconds is None else seconds
        self.requests = [each for each in self.requests if self.now < each.deadline + 20 * HOUR]
        if draw(mostly):
            self.step(number, "sweep", die_at=draw(deaths))

    def kill(self, number: int, draw: Draw) -> None:
        if process := self.processes[number]:
            process.kill()
            self.lose(number)

    def close(self, number: int, draw: Draw) -> None:
        if process := self.processes[number]:
            process.close(self.now)
            self.lose(number)
            for model in self.models:
                model.end_worker(self.workers[number])

    def end_worker(self, number: int, draw: Draw) -> None:
        if self.dead:
            self.step(number, "end_worker", self.dead.pop())

    def forget(self, number: int, draw: Draw) -> None:
        self.step(number, "forget")

    def set_usage(self, number: int, draw: Draw) -> None:
        """As the vendor's portal shows it. What has expired is not sent any more."""
        account = draw(st.sampled_from(self.accounts(draw(scopes))))
        self.step(number, "set_usage", account, self.billed[account.account, account.period])
        for request in self.requests:
            if self.models[0].reservations[request.begin.id].state != "open":
                request.deadline = 0.0

    @invariant()
    def shows_what_the_model_shows(self) -> None:
        if not self.is_changed:
            return
        number = next((number for number in (1, 0) if self.processes[number]), 0)
        features = 3 * (next(self.numbers) % 2)
        probes = [
            Begin(f"{scope} {key}", scope, features, want(key, 3), (), self.now - DAY, SECONDS)
            for scope in SCOPES
            for key in LISTS
        ]
        usage, _ = self.step(number, "view", probes)
        self.is_changed = False
        counts = Counter({(each.account, each.period): sum(each[2:]) for each in usage})
        assert all(billed <= counts[pair] for pair, billed in self.billed.items()), (self.billed, usage)


@pytest.mark.parametrize("kind, examples", [("sqlite", 200), ("redis", 20)])
def test_what_was_billed_is_counted(request: pytest.FixtureRequest, kind: str, examples: int) -> None:
    MoneyMachine.redis = request.getfixturevalue("redis_server") if kind == "redis" else None
    # To shrink takes minutes.
    limited = settings(max_examples=examples, stateful_step_count=20, phases=[Phase.reuse, Phase.generate])
    try:
        run_state_machine_as_test(MoneyMachine, settings=limited)
    finally:
        StoreProcess.end_idle()
