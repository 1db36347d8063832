"""Runs of all assumptions on sandboxes that deviate, quick enough for a run for each deviation.

A whole run sends more than a hundred requests, and most deviations concern a few of them. The first run therefore
records which fields of the sandbox's behavior each request reads. With a deviation, only requests that read a field
which it changes are sent; the others have the response of the first run, because the sandbox is deterministic.
"""

import itertools
import random
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import aiohttp

import nexar_sandbox
from proxy.kit import clock
from proxy.tools.conform import command as conform
from proxy.tools.conform import probes, reading, runner
from proxy.tools.conform.assumptions import ProbeRequest

FIELDS = frozenset(each.name for each in fields(nexar_sandbox.Behavior))
_reads: set[str] = set()
_hashes = itertools.count()


class RecordedBehavior(nexar_sandbox.Behavior):
    """The default behavior, which adds the fields that are read to `_reads`."""

    __slots__ = ()
    __eq__ = object.__eq__

    def __hash__(self) -> int:
        # As a key of a cache it would read every field; and a cached result would hide which fields it depends on.
        return next(_hashes)

    def __getattribute__(self, name: str) -> Any:
        if name in FIELDS:
            _reads.add(name)
        return super().__getattribute__(name)


@dataclass
class Recording:
    """Responses of the first run, and the fields that they depend on, by name of the request. Any request may depend on
    `shared_reads`: those of the sandbox's start and of token requests."""

    responses: dict[str, probes.ProbeResponse] = field(default_factory=dict)
    reads: dict[str, frozenset[str]] = field(default_factory=dict)
    shared_reads: set[str] = field(default_factory=set)

    def affected(self, requests: Mapping[str, ProbeRequest], changed: Collection[str]) -> set[str]:
        """Names of the requests that may have another response where these fields are changed."""
        if not self.shared_reads.isdisjoint(changed):
            return set(requests)
        names = {name for name, reads in self.reads.items() if not reads.isdisjoint(changed)}
        renewed = any("{earlier_token}" in repr(requests[name]) for name in names)
        return names | {name for name, request in requests.items() if renewed and request.renews_token}


class _RecordingSender:
    """Sends every request, and records its response and what it reads."""

    def __init__(self, prober: probes.Prober, names: Mapping[int, str]) -> None:
        self._prober, self._names = prober, names
        self.recording = Recording(shared_reads=_taken())

    @property
    def token_requests(self) -> int:
        return self._prober.token_requests

    @property
    def secrets(self) -> frozenset[str]:
        return self._prober.secrets

    async def log_in(self) -> None:
        await self._prober.log_in()

    async def send(self, request: ProbeRequest) -> probes.ProbeResponse:
        self.recording.shared_reads |= _taken()
        if id(request) not in self._names:  # the one that asks which parts exist
            return await self._prober.send(request)
        name = self._names[id(request)]
        response = self.recording.responses[name] = await self._prober.send(request)
        reads = self.recording.reads[name] = frozenset(_taken())
        if request.kind == "token":
            self.recording.shared_reads |= reads
        return response


class _ReplayingSender(_RecordingSender):
    """Sends the affected requests only."""

    def __init__(
        self, prober: probes.Prober, names: Mapping[int, str], recording: Recording, affected: Collection[str]
    ) -> None:
        super().__init__(prober, names)
        self._replayed = {name: response for name, response in recording.responses.items() if name not in affected}

    async def send(self, request: ProbeRequest) -> probes.ProbeResponse:
        response = self._replayed.get(self._names.get(id(request), ""))
        return await self._prober.send(request) if response is None else response


def _taken() -> set[str]:
    """The fields that were read since the last call."""
    reads = set(_reads)
    _reads.clear()
    return reads


class ConformanceRuns:
    """Runs on sandboxes that share catalog and key, and whose clock moves only where the run waits."""

    def __init__(self, catalog: nexar_sandbox.Catalog, key: nexar_sandbox.SigningKey) -> None:
        self.catalogue = reading.load()
        self.parts_billed = 0
        self._catalog, self._key = catalog, key
        self._names = {id(request): name for name, request in self.catalogue.requests.items()}
        self._recording: Recording | None = None

    async def without_deviations(self) -> runner.Observations:
        """The whole run on the default behavior; further runs rely on its recording."""
        _reads.clear()
        async with self._prober(RecordedBehavior()) as (target, prober):
            sender = _RecordingSender(prober, self._names)
            observed = await self._observe(target, sender)
        self._recording = sender.recording
        return observed

    async def with_deviation(self, name: str, *, whole: bool = False) -> runner.Observations:
        """Run all assumptions on a sandbox with this deviation, sending `whole` or only what it may affect."""
        if self._recording is None:
            await self.without_deviations()
        assert self._recording is not None
        requests = self.catalogue.requests
        changed = nexar_sandbox.DEVIATIONS[name]
        affected = set(requests) if whole else self._recording.affected(requests, changed)
        async with self._prober(nexar_sandbox.deviate([name])) as (target, prober):
            return await self._observe(target, _ReplayingSender(prober, self._names, self._recording, affected))

    async def _observe(self, target: probes.Target, sender: _RecordingSender) -> runner.Observations:
        selection = runner.select(self.catalogue, conform.DEFAULT_BUDGET, target.accounts)
        return await runner.run(self.catalogue, selection, sender)

    @asynccontextmanager
    async def _prober(self, changed: nexar_sandbox.Behavior) -> AsyncIterator[tuple[probes.Target, probes.Prober]]:
        time = clock.ManualClock()

        async def sleep(seconds: float) -> None:
            time.advance(seconds)

        # A port of its own for each sandbox must not be what two responses of different runs differ in.
        settings = replace(conform.conformance_sandbox(changed), issuer="https://identity.example")
        running = nexar_sandbox.serve(settings, clock=time, rng=random.Random(1), catalog=self._catalog, key=self._key)
        async with running as sandbox, aiohttp.ClientSession() as session:
            target = conform.conformance_target(sandbox)
            yield target, probes.Prober(target, session, time, sleep)
            self.parts_billed = sum(sandbox.part_usage.used(a.application_id) for a in sandbox.applications.all)
