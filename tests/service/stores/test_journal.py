"""Tests of the journal beside the SQLite store: entries survive a killed worker and are booked once."""

import errno
import io
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import log_lines

from proxy.gateway.quota import ledger
from proxy.kit import clock
from proxy.stores import journal
from proxy.stores.protocols import EntryGroup, LedgerEntry, Settlement, UsageIncrement
from proxy.stores.sqlite import SqliteStore

LINES = (LedgerEntry("demo", "2023-11"), LedgerEntry("demo/erp", "2023-11"))
GROUP = EntryGroup(LINES)

KILLED = """
import os, pathlib, sys
from proxy.stores import journal
from proxy.stores.protocols import EntryGroup, LedgerEntry
noted = journal.FileJournal(pathlib.Path(sys.argv[1]), "worker")
noted.close_intent(noted.open_intent(3, EntryGroup((LedgerEntry("demo", "2023-11"),))))
os._exit(0)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def log_output() -> Iterator[io.StringIO]:
    """Fixture: captured log output."""
    with log_lines.collected() as stream:
        yield stream


def files(file: Path) -> list[str]:
    return sorted(each.name for each in file.parent.glob("*.journal"))


async def reopened(file: Path) -> list[tuple[int, int]]:
    """Return used and uncertain parts, as read by a newly opened store."""
    store = await SqliteStore.open(file, clock.ManualClock())
    states = await store.usage(LINES)
    await store.aclose()
    return [(state.used, state.uncertain) for state in states]


async def test_entries_of_a_killed_worker_are_booked_by_the_next(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    noted.record_usage(1, GROUP, 3, 0)
    noted.record_usage(1, GROUP, 4, 2)
    assert files(file) == ["state.sqlite.worker.1.journal"]
    assert (file.parent / files(file)[0]).stat().st_mode & 0o777 == 0o600
    noted.close()  # as the end of the process does
    await store.aclose()
    assert await reopened(file) == [(7, 2), (7, 2)]
    assert files(file) == []
    assert await reopened(file) == [(7, 2), (7, 2)]


async def test_already_booked_entries_are_not_booked_again(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    noted.record_usage(1, GROUP, 3, 0)
    await store.settle(Settlement("worker", 1, (), tuple(UsageIncrement(line, 3, 0) for line in LINES)))
    noted.close()
    await store.aclose()
    assert await reopened(file) == [(3, 0), (3, 0)]


async def test_entries_of_a_live_worker_are_not_touched(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    noted.record_usage(1, GROUP, 3, 0)
    assert await reopened(file) == [(0, 0), (0, 0)]
    assert files(file) == ["state.sqlite.worker.1.journal"]
    noted.settled(1)
    assert files(file) == []
    noted.close()
    await store.aclose()


@pytest.mark.parametrize("cut", [b"[5,0,[[", b"[5,0,[\0\0\n"])
async def test_truncated_entry_is_ignored(file: Path, cut: bytes) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    noted.record_usage(1, GROUP, 3, 0)
    noted.close()
    notes = file.parent / files(file)[0]
    whole = notes.read_bytes()
    notes.write_bytes(whole.rstrip(b"\0") + cut + whole)
    await store.aclose()
    assert await reopened(file) == [(3, 0), (3, 0)]


async def test_settlements_are_booked_in_sequence(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    noted.record_usage(9, GROUP, 3, 0)  # under way when the worker was killed
    noted.record_usage(10, GROUP, 4, 0)
    noted.close()
    await store.aclose()
    assert await reopened(file) == [(7, 0), (7, 0)]


async def test_entries_settled_elsewhere_block_nothing(file: Path) -> None:
    for owner in ("first", "second", "third"):
        noted = journal.FileJournal(file, owner)
        noted.record_usage(1, GROUP, 3, 0)
        noted.close()
    found = []
    for notes, settlement in journal.left_behind(file):
        found.append(settlement.owner)
        notes.unlink()
        notes.with_name("state.sqlite.second.1.journal").unlink(missing_ok=True)
    assert found == ["first", "third"]


async def test_later_settlements_wait_for_one_in_progress_elsewhere(file: Path) -> None:
    noted = journal.FileJournal(file, "worker")
    noted.record_usage(9, GROUP, 3, 0)
    noted.record_usage(10, GROUP, 4, 0)
    noted.close()
    first = journal.left_behind(file)
    assert next(first)[1].sequence == 9
    assert list(journal.left_behind(file)) == []
    assert next(first)[1].sequence == 10
    first.close()  # type: ignore[attr-defined]  # a generator


async def test_journal_is_found_for_any_file_name(tmp_path: Path) -> None:
    file = tmp_path / "state[1].sqlite"
    noted = journal.FileJournal(file, "worker")
    noted.record_usage(1, GROUP, 3, 0)
    noted.close()
    assert await reopened(file) == [(3, 0), (3, 0)]


async def test_ledger_writes_the_journal_before_settling(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")
    await book.refresh(LINES)
    for parts in range(10):
        await book.book(ledger.RequestUsage(GROUP, parts, 1, ""))
    assert files(file) == ["state.sqlite.worker.1.journal"]
    assert book.counted(LINES[0]) == 55
    await book.refresh(LINES)
    assert files(file) == []
    assert [state[1:3] for state in await store.usage(LINES)] == [(45, 10)] * 2
    await book.book(ledger.RequestUsage(GROUP, 1, 0, ""))
    await book.close()
    assert files(file) == []
    await store.aclose()
    assert await reopened(file) == [(46, 10)] * 2


async def test_ledger_without_journal_settles_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.pwrite", full)
    await book.book(ledger.RequestUsage(GROUP, 7, 0, ""))
    monkeypatch.undo()
    assert [state.used for state in await store.usage(LINES)] == [7, 7]
    await book.close()
    await store.aclose()


async def test_full_disk_refuses_the_entry(file: Path) -> None:
    noted = journal.FileJournal(file, "worker")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # a write that ends short, as there
    try:
        with pytest.raises(OSError, match="space"):
            noted.record_usage(1, GROUP, 7, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    noted.record_usage(1, GROUP, 7, 0)
    noted.close()
    assert await reopened(file) == [(7, 0), (7, 0)]


async def test_unlockable_file_is_closed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = journal.FileJournal(file, "worker")

    def none(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", none)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(OSError, match="no locks"):
            noted.record_usage(1, GROUP, 7, 0)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_entries_of_past_days_are_not_kept_in_memory(file: Path) -> None:
    noted = journal.FileJournal(file, "worker")
    for day in range(1, 100):
        noted.record_usage(day, EntryGroup((LedgerEntry("demo", f"day {day}"),)), 1, 0)
        noted.settled(day)
    assert noted._files == {}  # private: memory shows nowhere else


async def test_unremovable_file_fails_no_request(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError("not here")

    await book.book(ledger.RequestUsage(GROUP, 3, 0, ""))
    monkeypatch.setattr("pathlib.Path.unlink", refused)
    await book.book(ledger.RequestUsage(GROUP, 4, 0, "a claim"))
    monkeypatch.undo()
    await book.close()
    await store.aclose()
    assert files(file) == ["state.sqlite.worker.1.journal"]
    assert await reopened(file) == [(7, 0), (7, 0)]
    assert files(file) == []


async def test_open_intents_of_a_killed_worker_become_uncertain_usage_once(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    intents = [noted.open_intent(parts, GROUP) for parts in (3, 20, 100)]
    noted.record_usage(1, GROUP, 2, 0)
    noted.close_intent(intents[1])
    assert noted.open_intent(5, GROUP) == intents[1]
    noted.close()
    await store.aclose()
    assert await reopened(file) == [(2, 108), (2, 108)]
    assert os.listdir(file.parent) == [file.name]
    assert await reopened(file) == [(2, 108), (2, 108)]


async def test_intents_of_a_live_worker_are_kept_until_its_end(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    intent = noted.open_intent(3, GROUP)
    assert await reopened(file) == [(0, 0), (0, 0)]
    noted.close_intent(intent)
    noted.close()
    assert list(file.parent.glob("*.intents")) == []
    await store.aclose()


async def test_killed_worker_without_open_intents_leaves_no_usage(file: Path) -> None:
    await (await SqliteStore.open(file, clock.ManualClock())).aclose()
    subprocess.run([sys.executable, "-c", KILLED, str(file)], check=True)
    assert len(list(file.parent.glob("*.intents"))) == 1
    assert await reopened(file) == [(0, 0), (0, 0)]
    assert list(file.parent.glob("*.intents")) == []


async def test_truncated_intent_does_not_affect_others(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    noted = store.journal("worker")
    for _ in range(100):
        noted.open_intent(1, GROUP)
    noted.close()
    intents = next(file.parent.glob("*.intents"))
    content = bytearray(intents.read_bytes())
    content[journal.SLOT + 20 : 2 * journal.SLOT] = bytes(journal.SLOT - 20)
    intents.write_bytes(content)
    await store.aclose()
    assert await reopened(file) == [(0, 99), (0, 99)]


async def test_oversized_intent_is_refused_and_the_next_accepted(file: Path) -> None:
    noted = journal.FileJournal(file, "worker")
    with pytest.raises(OSError, match="too long"):
        noted.open_intent(3, EntryGroup((LedgerEntry("x" * journal.SLOT, "2023-11"),)))
    assert noted.open_intent(3, GROUP) == 0
    noted.close()


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file grow any more."""
    write = os.pwrite

    def full(descriptor: int, text: bytes, start: int) -> int:
        if start + len(text) > os.fstat(descriptor).st_size:
            raise OSError(errno.ENOSPC, "no space")
        return write(descriptor, text, start)

    monkeypatch.setattr("os.pwrite", full)


async def test_usage_on_a_full_disk_is_uncertain_after_a_kill_and_logged_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, log_output: io.StringIO
) -> None:
    """However many requests are sent meanwhile: their usage is summed up in the room that is reserved at the start."""
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")
    fill_disk(monkeypatch)
    await store.aclose()  # it can be written no longer
    for _ in range(2 * journal.SLOTS_RESERVED):
        await book.book(ledger.RequestUsage(GROUP, 3, 0, "", book.open_intent(20, GROUP)))
    assert log_output.getvalue().count("journal write failed") == 1
    await book.close()  # leaves the file as a kill does
    assert await reopened(file) == [(0, 6 * journal.SLOTS_RESERVED)] * 2


async def test_requests_beyond_the_reserved_room_go_on_without_an_intent_on_a_full_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch, log_output: io.StringIO
) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")
    assert book.open_intent(1, GROUP) is not None  # the room is reserved
    fill_disk(monkeypatch)
    intents = [book.open_intent(1, GROUP) for _ in range(journal.SLOTS_RESERVED)]
    assert [number for number, intent in enumerate(intents) if intent is None] == [journal.SLOTS_RESERVED - 1]
    assert log_output.getvalue().count("journal write failed") == 1
    await store.aclose()


async def test_truncated_intents_are_restored(file: Path, log_output: io.StringIO) -> None:
    noted = journal.FileJournal(file, "worker")
    intents = [noted.open_intent(parts, GROUP) for parts in (1, 2, 4)]
    (written,) = file.parent.glob("*.intents")
    os.truncate(written, 0)
    noted.close_intent(intents[0])
    noted.settled(1)
    os.truncate(written, journal.SLOT)
    noted.open_intent(8, GROUP)
    noted.settled(2)
    noted.settled(3)
    noted.close()
    assert await reopened(file) == [(0, 14), (0, 14)]
    assert log_output.getvalue().count("intents restored") == 2


async def test_usage_of_a_truncated_journal_is_settled(file: Path) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")
    await book.book(ledger.RequestUsage(GROUP, 3, 0, ""))
    os.truncate(file.parent / files(file)[0], 0)
    await book.book(ledger.RequestUsage(GROUP, 4, 0, ""))
    await book.close()
    await store.aclose()
    assert await reopened(file) == [(7, 0), (7, 0)]


async def test_usage_in_the_journal_is_not_reported_as_lost(file: Path, log_output: io.StringIO) -> None:
    store = await SqliteStore.open(file, clock.ManualClock())
    book = ledger.Ledger(store, "worker")
    await book.book(ledger.RequestUsage(GROUP, 3, 0, "", book.open_intent(20, GROUP)))
    await store.aclose()
    await book.close()
    assert "usage booking failed" not in log_output.getvalue()
    assert "unsettled usage left in journal" in log_output.getvalue()
    assert await reopened(file) == [(3, 0), (3, 0)]
