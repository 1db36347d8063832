"""Lists as people bring them: each is the smallest form of a public report, with its right result."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import cases, commands

COLUMNS = "mpn,price,needed,order_quantity,total,sku,distributor"
Filled = Callable[..., Any]


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    """Fills a list; its rows by the names of columns, and the command's end."""

    async def fill(text: str, *options: str, columns: str = COLUMNS) -> tuple[list[dict[str, str]], Any, Any]:
        (tmp_path / "BOM.csv").write_text(text, encoding="utf-8")
        arguments = ("BOM.csv", "--columns", columns, "--offers", "none", "--yes", "--json", *options)
        done = await commands.wait(await commands.start(tmp_path, "sheet", "fill", *arguments))
        assert done.out, done
        summary = json.loads(done.out)
        with (tmp_path / summary["output"]).open(newline="", encoding="utf-8") as stream:
            header, *rows = csv.reader(stream)
        names = [heading.removeprefix("Nexar ").removesuffix(" USD") for heading in header]
        return [dict(zip(names, row, strict=False)) for row in rows], summary, done

    return fill


@cases.parametrize("text, code, spent, rows, said")
async def test_list_has_its_right_result(
    filled: Filled, text: str, code: int, spent: int, rows: list[dict[str, str]], said: list[str]
) -> None:
    found, summary, done = await filled(text)
    assert (done.code, summary["parts_spent"]) == (code, spent), done
    for row, expected in zip(found, rows, strict=True):
        assert {name: row.get(name, "") for name in expected} == expected
    for each in said:
        assert each in done.err


async def test_part_on_several_lines_is_bought_once(filled: Filled) -> None:
    text = "Qty,MPN,Manufacturer\n3,RC0603FR-071KL,Yageo\n3,rc0603fr-071kl,Yageo\n4994,RC0603FR-071KL,YAGEO\n"
    rows, summary, done = await filled(text)
    assert [row["order quantity"] for row in rows] == ["3", "3", "4994"]
    assert sum(float(row["total"]) for row in rows) == pytest.approx(187.15)
    assert summary["totals"][-1] == {"distributor": "All", "lines": 3, "total": "187.15"}
    assert "note: RC0603FR-071KL on rows 2, 3, 4 is bought once, 5,000 in all" in done.err


async def test_offer_of_the_list_s_number_is_taken_unless_any_is(filled: Filled) -> None:
    text = "Qty,MPN,Digi-Key Part Number\n10,NE5532P,470-82568455-2-ND\n"
    [own], *_ = await filled(text)
    assert (own["SKU"], own["order quantity"]) == ("470-82568455-2-ND", "1000")
    [cheapest], *_ = await filled(text, "--any-offer")
    assert (cheapest["SKU"], cheapest["order quantity"]) == ("NE5532P", "10")
    [best], _, done = await filled("Qty,MPN,Digi-Key Part Number\n10,NE5532P,NO-SUCH-1-ND\n")
    assert best["SKU"] == "NE5532P"
    assert "note: row 2: no offer has the number NO-SUCH-1-ND: the best one is taken" in done.err


async def test_only_offers_of_distributors_and_packagings_count(filled: Filled) -> None:
    text = "Qty,MPN,Manufacturer\n10,NE5532P,Texas Instruments\n"
    [row], *_ = await filled(text, "--only-distributors", "Mouser,Digi-Key", columns="distributor,packaging,price")
    assert row["distributor"] in ("Mouser", "Digi-Key")
    [row], *_ = await filled(text, "--packaging", "cut tape, reel", columns="distributor,packaging,price")
    assert "Tape" in row["packaging"] or "Reel" in row["packaging"]
    [row], summary, done = await filled(text, "--packaging", "ammo pack", columns="price")
    assert (done.code, summary["not_priced"], row["status"]) == (1, 1, "found, without price USD: no offer counts")


async def test_list_that_is_filled_again_says_what_changed(filled: Filled, tmp_path: Path) -> None:
    columns = "price,stock,lead_time,mpn,manufacturer"
    text = "Qty,MPN,Manufacturer\n10,NE5532P,Texas Instruments\n1,NE555P,Texas Instruments\n"
    _, summary, _ = await filled(text, columns=columns)
    assert summary["changed"] == []
    with (tmp_path / "BOM.filled.csv").open(newline="") as stream:
        header, first, second = csv.reader(stream)
        assert len(header) == 9
    first[3:6] = ["0.41053", "5", "9999"]
    first[7] = "onsemi"
    lines = [",".join(f'"{cell}"' for cell in row) for row in (header, first, second)]
    rows, summary, done = await filled("\n".join(lines) + "\n", columns=columns)
    [changed] = summary["changed"]
    assert changed.startswith("row 2, NE5532P: price USD 0.41053 → 0.82106 (+100%), lead time days 9999 → ")
    assert changed.endswith("manufacturer onsemi → Texas Instruments")
    assert f"changed: {changed}" in done.err
    assert [row["price"] for row in rows] == ["0.82106", "0.26778"]  # its own columns are updated
