"""The page Usage: what each API key has paid and avoided in a month; the same as JSON and as CSV."""

import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import running_admin
from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config

KEYS = (
    config.ApiKeySettings(config.digest("EXAMPLE_KEY"), name="erp"),
    config.ApiKeySettings(config.digest("shop"), name="shop"),
)


@pytest.fixture
async def managed(start: StartEnvironment, tmp_path: Path) -> AsyncIterator[ProxyEnvironment]:
    """The second run on a store, which the first has filled with the requests of two keys."""
    changes = {"store": f"sqlite:{tmp_path}/state.sqlite", "cache": {"seconds": 300}}
    async with start(application={"apikeys": KEYS}, **changes) as first:
        for key in ("EXAMPLE_KEY", "shop", "shop"):
            await first.get(target({"mpn": "SN74S74N"}, key=key))
    async with start(admin=True, application={"apikeys": KEYS}, **changes) as ready:
        yield ready


async def test_key_that_came_first_has_paid_for_the_others(admin: running_admin.AdminClient) -> None:
    page = await admin.json("/usage.json")
    assert (page["month"], page["months"], page["recorded"]) == ("2023-11", ["2023-11"], True)
    erp, shop = page["rows"]
    figures = ("requests", "hits", "parts_paid", "avoided_by_cache", "avoided_by_coalescing")
    assert [erp[name] for name in figures] == [1, 0, 3, 0, 0]
    assert [shop[name] for name in figures] == [2, 2, 0, 6, 0]
    assert [page["totals"][name] for name in figures] == [3, 2, 3, 6, 0]
    assert erp["fingerprint"] == config.digest("EXAMPLE_KEY").fingerprint
    html = await admin.page("/usage")
    assert "demo/shop" in html
    assert 'href="/usage.csv?month=2023-11"' in html
    assert 'href="/usage.json?month=2023-11"' in html


async def test_csv_has_the_rows_of_the_page(admin: running_admin.AdminClient) -> None:
    response = await admin.send("GET", "/usage.csv?month=2023-11", headers=running_admin.BEARER)
    assert response.headers["Content-Disposition"] == 'attachment; filename="usage.csv"'
    rows = list(csv.DictReader(io.StringIO(await response.text(), newline="")))
    shown = (await admin.json("/usage.json"))["rows"]
    assert rows == [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in shown]


async def test_month_without_requests_is_not_one_with_zeros(admin: running_admin.AdminClient) -> None:
    page = await admin.json("/usage.json?month=2023-10")
    assert (page["recorded"], page["rows"][0]["requests"], page["rows"][0]["parts_paid"]) == (False, None, 0)
    assert "No requests are recorded in 2023-10" in await admin.page("/usage?month=2023-10")


@pytest.mark.parametrize("month", ["2023-13", "november", "2023-1"])
async def test_wrong_month_is_refused(admin: running_admin.AdminClient, month: str) -> None:
    response = await admin.send("GET", f"/usage.json?month={month}", headers=running_admin.BEARER)
    assert response.status == 400
    assert (await response.json())["message"] == f"{month!r} is not a month; send one such as 2026-11"
