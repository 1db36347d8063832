"""Contract of the store: the same tests for every implementation."""

import pytest

from proxy.kit.clock import ManualClock
from proxy.store.protocol import (
    Account,
    Begin,
    Busy,
    Finish,
    Found,
    Hit,
    Outcome,
    Refused,
    Reserved,
    Result,
    Selection,
    Store,
    Usage,
    Want,
)

NOVEMBER, DECEMBER = Account("erp", "2023-11", 100), Account("erp", "2023-12", 100)
SELECTION = Selection("fields", 0b11)
FRESH = 84_600.0
BODY = b"{}" * 100


def begin(id: str, *wants: Want | str, time: ManualClock, **changes: object) -> Begin:
    asked = [Want(want, 1) if isinstance(want, str) else want for want in wants]
    made = Begin(id, "scope", SELECTION, asked, (NOVEMBER,), time.now() - FRESH, 35.0)
    return made._replace(**changes)  # type: ignore[arg-type]


def finish(id: str, *results: Result, used: int = 1, uncertain: int = 0, **changes: object) -> Finish:
    made = Finish(id, "scope", SELECTION, results, (NOVEMBER,), used, uncertain)
    return made._replace(**changes)  # type: ignore[arg-type]


def result(key: str, *uids: str, asked: int = 1, hits: int | None = None, body: bytes = BODY) -> Result:
    items = tuple(Hit(uid, f"number of {uid}") for uid in uids)
    return Result(key, asked, len(uids) if hits is None else hits, items, (body,) * len(uids))


async def one(store: Store, begun: Begin) -> Outcome:
    ((outcome,),) = await store.begin([begun])
    return outcome


async def counts(store: Store, account: Account = NOVEMBER) -> tuple[int, int, int]:
    """Return used, uncertain and reserved parts."""
    rows = {(row.account, row.period): row for row in await store.usage()}
    row = rows.get((account.account, account.period), Usage("", "", 0, 0, 0))
    return row.used, row.uncertain, row.reserved


async def test_want_is_reserved_then_busy_then_found(store: Store, time: ManualClock) -> None:
    assert await one(store, begin("a", "k", time=time)) == Reserved(None)
    assert await one(store, begin("b", "k", time=time)) == Busy()
    assert await counts(store) == (0, 0, 1)
    await store.finish([finish("a", result("k", "u"))])
    found = await one(store, begin("c", "k", time=time))
    assert isinstance(found, Found)
    assert found.result == result("k", "u")._replace(part_ids=(None,), fetched=time.now())
    assert await counts(store) == (1, 0, 0)


@pytest.mark.parametrize("end", [1, 3])
async def test_wants_that_do_not_fit_are_refused_in_their_order(store: Store, time: ManualClock, end: int) -> None:
    limited = Account("erp", "2023-11", 4)
    wants = [Want("a", end), Want("b", 4), Want("c", 1), Want("free", 9, 0)]
    (outcomes,) = await store.begin([begin("a", *wants, time=time, accounts=(limited,))])
    assert outcomes == [Reserved(None), Refused(limited, 4 - end), Reserved(None), Reserved(None)]
    assert await counts(store) == (0, 0, end + 1)
