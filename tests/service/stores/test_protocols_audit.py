"""Tests of the store protocol for the audit log with memory, SQLite and a real Redis."""

import pytest

from proxy.stores import redis, sqlite
from proxy.stores.protocols import AuditEntry, Store


def entry(number: int) -> AuditEntry:
    return AuditEntry(number + 0.25, "operator, token", "192.0.2.1", "/cache/clear", 'application="é\x00"', str(number))


async def test_entries_are_read_from_the_last_one(store: Store) -> None:
    assert await store.audit_entries(0, 9) == []
    for number in range(5):
        await store.add_audit_entry(entry(number))
    assert await store.audit_entries(0, 2) == [entry(4), entry(3)]
    assert await store.audit_entries(2, 9) == [entry(2), entry(1), entry(0)]
    assert await store.audit_entries(5, 9) == []


async def test_only_the_last_entries_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite, redis):
        monkeypatch.setattr(module, "AUDIT_MAX", 3)
    for number in range(7):
        await store.add_audit_entry(entry(number))
    assert await store.audit_entries(0, 9) == [entry(6), entry(5), entry(4)]
