"""Tests of the ring's records under readers: the index may point to another one, or a writer may come in between."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from service.stores.test_protocols_cache import NOW, SIZE, A, B, record

from proxy.stores.cache_ring import READ_BYTES, SLOTS_MIN, CacheRing, ring_start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite.cache"


@pytest.fixture
def ring(file: Path) -> Iterator[CacheRing]:
    opened = CacheRing(file, SIZE)
    yield opened
    opened.close()


def test_record_of_another_key_is_a_miss(ring: CacheRing, file: Path) -> None:
    """As a slot of the index may point to it after a crash of the system, which wrote only some pages."""
    ring.append([record(A, b"of A"), record(B, b"of B")])
    places = {entry.key: entry.place.to_bytes(8, "little") for entry in ring.entries(NOW)}
    content = file.read_bytes()
    assert content.count(A[8:] + places[A], 0, ring_start(SLOTS_MIN)) == 1
    file.write_bytes(content.replace(A[8:] + places[A], A[8:] + places[B]))
    assert [ring.content(key) for key in (A, B)] == [None, (NOW, NOW + 60, b"of B")]


def test_record_that_is_overwritten_while_it_is_read_is_a_miss(
    ring: CacheRing, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring.append([record(A, b"a" * 2 * READ_BYTES)])
    writer, read = CacheRing(file, SIZE), os.pread

    def read_then_overwrite(descriptor: int, size: int, start: int) -> bytes:
        data = read(descriptor, size, start)
        if size == READ_BYTES:  # the first part of the record
            monkeypatch.undo()
            for number in range(SIZE // 10_000):
                writer.append([record(number.to_bytes(16, "big"), bytes(10_000))])
        return data

    monkeypatch.setattr(os, "pread", read_then_overwrite)
    assert ring.content(A) is None
    assert os.pread is read
    writer.close()
