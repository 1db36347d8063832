"""Steps of one request, recorded for a trace of it (proxy/explain/trace.py). Off unless a trace is being recorded.

The request path opens a step where it decides, waits or works: `with steps.step("reserve"): …`. A step that is opened
inside of another is a part of it, also in a task that was started there. Facts are names, numbers and words of this
program: no API key, token or address.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from types import TracebackType

from proxy import errors
from proxy.kit.clock import Clock

Fact = str | float | list[int] | list[str] | None


class RecordedStep(AbstractContextManager[None]):
    """Step of a traced request. `began` and `ended` are in the clock's monotonic seconds; `ended` is None as long as
    it lasts. `failure` is the text of the error that ended it."""

    __slots__ = ("_clock", "_token", "began", "ended", "facts", "failure", "name", "steps")

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.began = clock.monotonic()
        self.ended: float | None = None
        self.facts: dict[str, Fact] = {}
        self.failure: str | None = None
        self.steps: list[RecordedStep] = []
        self._clock = clock
        self._token: Token[RecordedStep | None] | None = None

    def begin(self, name: str) -> "RecordedStep":
        """Begin a step inside of this one."""
        step = RecordedStep(name, self._clock)
        self.steps.append(step)
        return step

    def fail(self, error: BaseException) -> None:
        """Note the error that the step ended with."""
        # Only this program's own errors have texts that are meant for people, and name no address.
        self.failure = str(error) if isinstance(error, errors.BridgeError) else type(error).__name__

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended = self._clock.monotonic()
        if error is not None:
            self.fail(error)
        if self._token is not None:
            _CURRENT.reset(self._token)


class _UnrecordedStep(AbstractContextManager[None]):
    """Step of a request that nobody traces."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_CURRENT: ContextVar[RecordedStep | None] = ContextVar("step", default=None)
_UNRECORDED = _UnrecordedStep()


def step(name: str) -> AbstractContextManager[None]:
    """Begin a step of the request that this task works for."""
    current = _CURRENT.get()
    return _UNRECORDED if current is None else current.begin(name)


def is_recorded() -> bool:
    """Return whether facts are wanted: for those that take time to collect."""
    return _CURRENT.get() is not None


def add(**facts: Fact) -> None:
    """Add facts to the current step."""
    current = _CURRENT.get()
    if current is not None:
        current.facts |= facts


def add_queries(source: str, positions: Collection[int]) -> None:
    """Add to the current step which queries of the request got their results from this source."""
    current = _CURRENT.get()
    if current is not None:
        current.facts[source] = sorted(positions)


def fail(error: BaseException) -> None:
    """Note that the current step ended with an error that is not raised."""
    current = _CURRENT.get()
    if current is not None:
        current.fail(error)
