"""Opens both sides of a comparison: a running service, one that is started here, or a file."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from proxy import config
from proxy.cli import option_fields
from proxy.kit.clock import Clock
from proxy.tools.compare.command import checks, local_service, options
from proxy.tools.compare.running.exchange import Sides
from proxy.traffic import http_side
from proxy.traffic.clients import Clients, SideName
from proxy.traffic.recording.recorded import RecordedSide, Recording
from proxy.traffic.v3_response import ComparedSide

EXAMPLE_KEY = "EXAMPLE_KEY"  # the key that the embedded legacy service accepts


class ReadySides(NamedTuple):
    """Open sides. `free`: the requests cost nothing."""

    sides: Sides
    free: bool


class SideKeys:
    """API key of each client for each side: the one given on the command line for all clients, else the client's
    own."""

    def __init__(self, clients: Clients, chosen: options.ComparisonOptions) -> None:
        self.clients = clients
        self._baseline = option_fields.read_key(chosen.baseline_key, "--baseline-key")
        self._candidate = option_fields.read_key(chosen.candidate_key, "--candidate-key")
        # Keys that are generated for a run appear in its responses, too.
        self._more: set[str] = set()

    def key(self, client: str, side: SideName) -> str | None:
        """Return the key to send."""
        for_all = self._baseline if side == "baseline" else self._candidate
        return self.clients.key(client, side) if for_all is None else for_all.reveal()

    def add_secrets(self, keys: Iterable[str]) -> None:
        """Add keys that were generated here, to be redacted as well."""
        self._more.update(keys)

    def secrets(self) -> tuple[str, ...]:
        """Return all keys, for redaction."""
        given = (each.reveal() for each in (self._baseline, self._candidate) if each is not None)
        return (*self.clients.secrets(), *given, *self._more)


@asynccontextmanager
async def open_sides(
    chosen: options.ComparisonOptions,
    keys: SideKeys,
    baseline: Recording | None,
    settings: config.Config | None,
    clock: Clock,
) -> AsyncIterator[ReadySides]:
    """Open the chosen sides. `baseline` are its recorded responses; None if it is sent requests. `settings` are those
    of the service to be started here."""
    async with AsyncExitStack() as stack:
        opening = _Opening(chosen, keys, baseline, clock, stack)
        if settings is not None:
            yield await opening.started(settings)
        else:
            old, new = await opening.baseline(None), None
            if chosen.candidate is not None:
                new = await opening.service(chosen.candidate, "candidate")
            yield ReadySides(Sides(old, new), free=False)


class _Opening:
    """Opens sides, to be closed with `stack`."""

    def __init__(
        self,
        chosen: options.ComparisonOptions,
        keys: SideKeys,
        baseline: Recording | None,
        clock: Clock,
        stack: AsyncExitStack,
    ) -> None:
        self._chosen = chosen
        self._keys = keys
        self._baseline = baseline
        self._clock = clock
        self._stack = stack

    async def baseline(self, service: local_service.LocalService | None) -> ComparedSide | None:
        """Open the baseline; None if none was chosen. `service` is the one that was started."""
        chosen = self._chosen.baseline
        if service is not None and service.legacy is not None and chosen == options.SANDBOX:
            return await self._side(service.legacy, checks.baseline_limits(self._chosen), lambda _: EXAMPLE_KEY)
        if chosen is not None and self._chosen.baseline_file is None:
            return await self.service(chosen, "baseline")
        return None if self._baseline is None else RecordedSide(self._baseline)

    async def service(self, url: str, side: SideName) -> http_side.HttpSide:
        """Open a service that is already running."""
        limits = checks.baseline_limits(self._chosen) if side == "baseline" else checks.candidate_limits(self._chosen)
        return await self._side(url, limits, lambda client: self._keys.key(client, side))

    async def started(self, settings: config.Config) -> ReadySides:
        """Start the service of a configuration, and open it."""
        free = settings.upstream == "sandbox"
        service = await self._stack.enter_async_context(local_service.running(settings))
        self._keys.add_secrets(service.keys.values())
        alone = next(iter(service.keys.values())) if len(service.keys) == 1 else None

        def key(client: str) -> str | None:
            # With one application, its key serves clients that have none; with several, a guess could bill the wrong
            # one.
            return self._keys.key(client, "candidate") or alone

        candidate = await self._side(service.url, checks.candidate_limits(self._chosen), key)
        return ReadySides(Sides(await self.baseline(service), candidate), free)

    async def _side(
        self, base: str, limits: http_side.SideLimits, key: Callable[[str], str | None]
    ) -> http_side.HttpSide:
        session = await self._stack.enter_async_context(http_side.open_session(limits))
        return http_side.HttpSide(http_side.base_url(base), limits, key, session, clock=self._clock)
