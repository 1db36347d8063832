"""Tests of group commit: work that arrives during a transaction goes into the next one."""

import asyncio
from collections.abc import Sequence

import pytest

from proxy.gateway.quota.ledger import GroupCommit


class Book:
    """Commits when it is let go, and notes each transaction."""

    def __init__(self) -> None:
        self.transactions: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.broken = False
        self.group: GroupCommit[int, str] = GroupCommit("a test's transactions", self.commit)

    async def commit(self, pieces: Sequence[int]) -> list[str]:
        self.transactions.append(list(pieces))
        await self.gate.wait()
        if self.broken:
            raise OSError("the disk is full")
        return [f"{piece} committed" for piece in pieces]

    async def hand_in(self, *pieces: int) -> "list[asyncio.Task[str]]":
        tasks = [asyncio.create_task(self.group.run(piece)) for piece in pieces]
        await asyncio.sleep(0)
        return tasks


@pytest.fixture
def book() -> Book:
    return Book()


async def test_single_operation_is_committed_at_once(book: Book) -> None:
    assert [await book.group.run(piece) for piece in (1, 2)] == ["1 committed", "2 committed"]
    assert book.transactions == [[1], [2]]


async def test_concurrent_operations_share_a_transaction_with_separate_results(book: Book) -> None:
    book.gate.clear()
    tasks = await book.hand_in(*range(50))
    book.gate.set()
    assert await asyncio.gather(*tasks) == [f"{piece} committed" for piece in range(50)]
    assert book.transactions == [[0], list(range(1, 50))]


async def test_error_affects_only_its_transaction(book: Book) -> None:
    book.gate.clear()
    tasks = await book.hand_in(1, 2, 3)
    book.broken = True
    book.gate.set()
    assert [type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [OSError] * 3
    book.broken = False
    assert await book.group.run(4) == "4 committed"


async def test_cancelled_caller_does_not_undo_its_operation(book: Book) -> None:
    book.gate.clear()
    first, second, third = await book.hand_in(1, 2, 3)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    book.gate.set()
    assert list(await asyncio.gather(first, third)) == ["1 committed", "3 committed"]
    assert book.transactions == [[1], [2, 3]]


async def test_close_waits_for_submitted_operations(book: Book) -> None:
    book.gate.clear()
    tasks = await book.hand_in(1, 2)
    closing = asyncio.create_task(book.group.close())
    book.gate.set()
    await asyncio.gather(*tasks, closing)
    assert book.transactions == [[1], [2]]
