"""A stage as a value, and the values that the stages of one run share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from proxy import config, errors
from proxy.doctor.findings import CheckResult, StageName
from proxy.gateway.core import StoredState, Upstream
from proxy.kit import clock as clocks

T = TypeVar("T")
StartSandbox = Callable[[config.Config, AsyncExitStack], Awaitable[config.Config]]


@dataclass(slots=True)
class Inspection:
    """Input of a run, and values that a stage leaves for later ones. A stage runs only if those it needs are there.

    `file` is the configuration; `start_sandbox` starts the embedded sandbox and returns the settings with its
    addresses; `requests` are recorded requests to estimate the costs of. `resources` closes what stages open.
    """

    file: Path
    environ: Mapping[str, str]
    clock: clocks.Clock
    start_sandbox: StartSandbox
    resources: AsyncExitStack
    requests: tuple[Path, ...] = ()
    configured: config.Config | None = None  # by stage configuration: as the service would use it
    is_embedded: bool = False  # by stage configuration: the upstream is the embedded sandbox
    reached: Upstream | None = None  # by stage network, if the upstream's services can be reached
    clock_agrees_with: str | None = None  # by stage network: a host whose clock agrees with this machine's
    has_wrong_clock: bool = False  # by stage network: this machine's clock differs
    identity_clock: CheckResult | None = None  # by stage identity: that of the identity service alone differs
    tokens: dict[str, str] = field(default_factory=dict)  # by stage identity: access tokens by application
    stored_tokens: set[str] = field(default_factory=set)  # of these, the applications whose token is from the store
    accepted: set[str] = field(default_factory=set)  # by stage graphql: applications whose token is accepted
    refusal: errors.QueryRefused | None = None  # by stage graphql: of a query that every schema should accept
    state: StoredState | None = None  # by the first stage that uses it: see `stored`
    has_tried_store: bool = False
    store_error: errors.StoreUnavailable | None = None  # by the first stage for which the store has failed

    @property
    def settings(self) -> config.Config:
        """The settings, for stages that need the stage configuration."""
        assert self.configured is not None  # noqa: S101 - run.py skips the stage otherwise
        return self.configured

    @property
    def upstream(self) -> config.UpstreamSettings:
        """The upstream's addresses and limits: those of the embedded sandbox with `upstream: sandbox`."""
        upstream = self.settings.upstream
        assert upstream != "sandbox"  # noqa: S101 - the stage configuration has started it
        return upstream

    async def stored(self, work: Callable[[StoredState], Awaitable[T]], default: T) -> T:
        """Return what `work` does with what the service has stored, or the default where the store cannot be used: the
        stage store says why. One that does not exist is not made: it would belong to whoever runs the check."""
        try:
            if not self.has_tried_store:
                self.has_tried_store = True
                self.state = await StoredState.open_existing(self.settings, self.clock)
                if self.state is not None:
                    self.resources.push_async_callback(self.state.aclose)
            return default if self.state is None else await work(self.state)
        except errors.StoreUnavailable as error:
            # Not tried again: each attempt may last until a timeout.
            self.state, self.store_error = None, error
        except errors.ConfigError as error:
            self.state = None
            if isinstance(error.__cause__, errors.StoreUnavailable):
                self.store_error = error.__cause__
        return default


@dataclass(frozen=True, slots=True)
class StageCheck:
    """One stage as run.py runs it. `check` yields findings as it makes them. Without what `is_ready` looks for, the
    stage is skipped, because of the stage `needs`."""

    name: StageName
    check: Callable[[Inspection], AsyncIterator[CheckResult]]
    needs: StageName = "configuration"
    is_ready: Callable[[Inspection], bool] = lambda inspection: inspection.configured is not None
