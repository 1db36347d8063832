"""Steps of one request, recorded for a trace of it (proxy/explain/trace.py). Off unless a trace is being recorded.

A step that has others within it is opened, also for the tasks that are started there: `with steps.step("execute"): …`.
Any other is a lap, which is named at its end: it lasts from the end of the step before. It costs a request without a
trace a third of a `with`. Facts are names, numbers and words of this program: no API key, token or address.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Literal

from proxy import errors
from proxy.kit.clock import Clock

Fact = str | bool | float | list[str] | None
# Where the result of a query comes from. `plan`: nothing can match it, so that nothing is sent; `coalesced`: from a
# request that had executed an equal query already; `failed`: it has none.
Source = Literal["memory", "shared cache", "plan", "upstream", "coalesced", "stale", "failed"]


class RecordedStep(AbstractContextManager[None]):
    """Step of a traced request. `began` and `ended` are in the clock's monotonic seconds; `ended` is None as long as
    it lasts. `failure` is the error that ended it. `sources` of the queries are the same in all steps of a request."""

    __slots__ = ("_clock", "_token", "began", "ended", "facts", "failure", "name", "sources", "steps")

    def __init__(self, name: str, clock: Clock, outer: "RecordedStep | None" = None) -> None:
        self.name = name
        self.began = clock.monotonic()
        self.ended: float | None = None
        self.facts: dict[str, Fact] = {}
        self.failure: BaseException | None = None
        self.steps: list[RecordedStep] = []
        self.sources: dict[int, Source] = {} if outer is None else outer.sources
        self._clock = clock
        self._token: Token[RecordedStep | None] | None = None

    def begin(self, name: str) -> "RecordedStep":
        step = RecordedStep(name, self._clock, self)
        self.steps.append(step)
        return step

    def lap(self, name: str, failure: errors.BridgeError | None, facts: dict[str, Fact]) -> None:
        """Add a step from the end of the one before, or from the beginning of this one, until now."""
        began = max([self.began, *(each.ended for each in self.steps if each.ended is not None)])
        step = self.begin(name)
        step.began, step.ended, step.failure, step.facts = began, step.began, failure, facts

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended = self._clock.monotonic()
        self.failure = self.failure or error
        if self._token is not None:
            _CURRENT.reset(self._token)


_CURRENT: ContextVar[RecordedStep | None] = ContextVar("step", default=None)
_current = _CURRENT.get  # bound once: this is what requests without a trace pay for
_UNRECORDED = nullcontext()


def step(name: str) -> AbstractContextManager[None]:
    """Begin a step of the request that this task works for."""
    current = _current()
    return _UNRECORDED if current is None else current.begin(name)


def lap(name: str, failure: errors.BridgeError | None = None, **facts: Fact) -> None:
    """Name what was done since the step before, and the error that it ended with."""
    current = _current()
    if current is not None:
        current.lap(name, failure, facts)


def is_recorded() -> bool:
    """Return whether facts are wanted: for those that take time to collect."""
    return _current() is not None


def add(**facts: Fact) -> None:
    """Add facts to the current step."""
    current = _current()
    if current is not None:
        current.facts |= facts


def add_source(source: Source, positions: Collection[int]) -> None:
    """Note where the results of these queries of the request come from."""
    current = _current()
    if current is not None:
        current.sources |= dict.fromkeys(positions, source)
