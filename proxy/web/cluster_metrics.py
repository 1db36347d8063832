"""Metrics and activity of the whole service, for the admin interface: of all workers of this machine, and of all
machines on the same Redis.

Workers share files (telemetry/merging.py). One worker of each machine puts the machine's figures into the store as
notes, takes a sample of the figures of all machines every few seconds, and shares the history that they make with the
other workers. A store in memory or in a file has one machine, and gets no notes.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
import structlog

import proxy
from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.stores.protocols import NoteStore
from proxy.telemetry import activity as activities
from proxy.telemetry import history as histories
from proxy.telemetry import merging
from proxy.telemetry.metrics import Metrics
from proxy.web import operator_endpoints

NOTE, ACTIVITY_NOTE = "machine", "machine activity"  # kinds of notes
STALE_SECONDS = 30.0  # after which the note of a machine that is gone counts no more
READ_SECONDS = 1.0  # for which notes that were read serve several readers
HISTORY_FILE = "history.json"
LAG_SECONDS = 0.1  # slept to measure the lag of the event loop, once a second

T = TypeVar("T", bound="Instance | _InstanceActivity")

log = structlog.get_logger()


class Instance(msgspec.Struct, frozen=True):
    """A machine, or one of several installations of it, at the time `at`; times are in seconds since 1970."""

    name: str
    version: str
    at: float
    started: float
    workers: list[merging.WorkerState]
    metrics: merging.Snapshot


class _InstanceActivity(msgspec.Struct, frozen=True):
    at: float
    activity: activities.RecentActivity


class ClusterMetrics:
    """Metrics, activity and history of all machines; `local` are those of this one. `shared`: the store may have those
    of others."""

    def __init__(self, local: merging.WorkerFigures, store: NoteStore, clock: Clock, *, shared: bool) -> None:
        self.local = local
        self._store = store
        self._clock = clock
        self._shared = shared
        slot = local.slot
        self._publishes = slot is None or slot.number == 1
        # Two installations of a host are told apart; workers of one have a folder in common.
        suffix = secrets.token_hex(4) if slot is None else slot.folder.name.rpartition("-")[2]
        self.name = f"{socket.gethostname()}-{suffix}"
        self._history_file = None if slot is None else slot.folder / HISTORY_FILE
        # That of the worker that this one replaces.
        self._history = self._read_history()
        self._notes: dict[str, tuple[float, dict[str, str]]] = {}
        self._published: tuple[object, ...] = ()
        self._published_at = 0.0
        self._writing = PeriodicTask("figures of this worker", self.write, merging.WRITE_SECONDS)
        self._publishing = PeriodicTask("figures of this machine", self.publish, histories.SAMPLE_SECONDS)
        self._measuring = PeriodicTask("lag of the event loop", self.measure_lag, 1.0 - LAG_SECONDS)
        self.store_failure: str | None = None

    def history(self) -> histories.History:
        """Return the last hour of all machines."""
        return self._history if self._publishes else self._read_history()

    async def instances(self) -> list[Instance]:
        """Return all machines that have shown signs of life lately: this one first, the others by name."""
        return [self._own(), *sorted(await self._others(NOTE, Instance), key=lambda instance: instance.name)]

    # Of machines that were read before, so that a page reads the store once.
    def metrics(self, machines: Iterable[Instance]) -> Metrics:
        """Return the metrics of several machines as those of one. What all read from the store is not multiplied."""
        return merging.merged(self.local.metrics, [instance.metrics for instance in machines])

    async def recent(self) -> activities.RecentActivity:
        others = await self._others(ACTIVITY_NOTE, _InstanceActivity)
        return activities.merged([await self.local.recent(), *(other.activity for other in others)])

    def start(self) -> None:
        """Begin to measure, and to share the figures of this worker, and of this machine."""
        self._measuring.start()
        if self.local.slot is not None:
            self._writing.start()
        if self._publishes:
            self._publishing.start()

    async def close(self) -> None:
        """Share the figures of this worker a last time, and withdraw those of this machine."""
        for task in (self._measuring, self._publishing, self._writing):
            await task.close()
        await self._writing.call()
        if self._publishes and self._shared:
            with contextlib.suppress(errors.StoreUnavailable):
                await self._drop(self.name)

    async def measure_lag(self) -> None:
        """Measure by how much the event loop is late."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self.local.metrics.event_loop_lag[()] = max(0.0, asyncio.get_running_loop().time() - due)

    async def write(self) -> None:
        self.local.write()
        await self.local.write_activity()

    async def publish(self) -> None:
        """Put the figures of this machine into the store, and take a sample of those of all."""
        machines = await self.instances()
        uncounted = operator_endpoints.PATHS
        counts = [(instance, histories.Counts.of(self.metrics([instance]), uncounted)) for instance in machines]
        sources = [histories.CountSource(instance.name, instance.started, counted) for instance, counted in counts]
        self._history.add(sources, self._clock.now())
        if self._history_file is not None:
            merging.write_file(self._history_file, msgspec.json.encode(self._history))
        if self._shared:
            with self._watching_store():
                await self._put_notes(machines[0])

    async def _put_notes(self, own: Instance) -> None:
        await self._store.put_note(NOTE, self.name, msgspec.json.encode(own).decode())
        recent = await self.local.recent()
        latest = tuple(records[0] for records in (recent.requests, recent.operations) if records)
        activity = _InstanceActivity(own.at, recent)
        # At rest it is only as old as it may be.
        if latest != self._published or own.at - self._published_at > STALE_SECONDS / 2:
            self._published = latest
            self._published_at = own.at
            await self._store.put_note(ACTIVITY_NOTE, self.name, msgspec.json.encode(activity).decode())
        # Any machine tidies up after those that are gone; dropping a note twice does no harm.
        for name, text in (await self._store.notes(NOTE)).items():
            note = _decoded(text, Instance)
            if note is None or note.at < own.at - STALE_SECONDS:
                await self._drop(name)

    async def _drop(self, name: str) -> None:
        for kind in (NOTE, ACTIVITY_NOTE):
            await self._store.drop_note(kind, name)

    def _own(self) -> Instance:
        snapshots = self.local.snapshots()
        workers = sorted(
            (snapshot.worker for snapshot in snapshots if snapshot.worker), key=lambda worker: worker.number
        )
        metrics = merging.snapshot(merging.merged(self.local.metrics, snapshots))
        started = min(worker.started for worker in workers)
        return Instance(self.name, proxy.__version__, self._clock.now(), started, workers, metrics)

    async def _others(self, kind: str, struct: type[T]) -> list[T]:
        """Return the notes of the other machines that are not stale."""
        if not self._shared:
            return []
        read_at, texts = self._notes.get(kind, (0.0, {}))
        if self._clock.monotonic() - read_at > READ_SECONDS or kind not in self._notes:
            with self._watching_store():
                texts = await self._store.notes(kind)
                self._notes[kind] = self._clock.monotonic(), texts
        decoded = (_decoded(text, struct) for name, text in texts.items() if name != self.name)
        oldest = self._clock.now() - STALE_SECONDS
        return [note for note in decoded if note is not None and note.at >= oldest]

    @contextlib.contextmanager
    def _watching_store(self) -> Iterator[None]:
        """Remember whether the store can be reached. Without it there are the figures of this machine."""
        try:
            yield
        except errors.StoreUnavailable as error:
            self.store_failure = error.message
        else:
            self.store_failure = None

    def _read_history(self) -> histories.History:
        if self._history_file is not None:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                return msgspec.json.decode(self._history_file.read_bytes(), type=histories.History)
        return histories.History()


def _decoded(text: str, struct: type[T]) -> T | None:
    """Decode a note; None for one of another version whose notes have another form."""
    try:
        return msgspec.json.decode(text, type=struct)
    except msgspec.DecodeError:
        return None
