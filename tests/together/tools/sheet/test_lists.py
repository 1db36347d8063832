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


@pytest.mark.parametrize(
    "numbers",
    [
        ("RC0603FR-071KL,Yageo", "rc0603fr-071kl,Yageo", "RC0603FR-071KL,YAGEO"),
        ("RC0603FR-071KL,Yageo", "RC0603FR071KL,Yageo", "RC0603FR 071KL,yageo"),
        ("RC0603FR-071KL,Yageo", "RC0603FR-071KL,", "RC0603FR_071KL,"),
    ],
)
async def test_part_on_several_lines_is_bought_once(filled: Filled, numbers: tuple[str, ...]) -> None:
    """At the minimum of 5 000 pieces; the lines pay as much as one line of as many pieces."""
    lines = [f"{quantity},{number}\n" for quantity, number in zip((3, 3, 4994), numbers, strict=True)]
    rows, summary, done = await filled("".join(["Qty,MPN,Manufacturer\n", *lines]))
    assert [row["order quantity"] for row in rows] == ["3", "3", "4994"]
    assert sum(float(row["total"]) for row in rows) == pytest.approx(187.15)
    assert summary["totals"][-1] == {"distributor": "All", "lines": 3, "total": "187.15"}
    assert "note: RC0603FR-071KL on rows 2, 3, 4 is bought once, 5,000 in all" in done.err


@pytest.mark.parametrize(
    "part, quantities",
    [
        ("NE555P,Texas Instruments", (400, 350, 250)),  # its price falls at 1 000
        ("SN74S74N,Texas Instruments", (60, 30, 10)),
        ("1N4007,onsemi", (1, 4999, 7)),  # in multiples
        ("NE5532P,Texas Instruments", (1, 1, 1)),
    ],
)
async def test_price_break_and_multiple_are_those_of_the_sum(
    filled: Filled, part: str, quantities: tuple[int, ...]
) -> None:
    head = "Qty,MPN,Manufacturer\n"
    [alone], *_ = await filled(f"{head}{sum(quantities)},{part}\n")
    rows, *_ = await filled(head + "".join(f"{quantity},{part}\n" for quantity in quantities))
    assert {row["price"] for row in rows} == {alone["price"]}
    assert {row["SKU"] for row in rows} == {alone["SKU"]}
    assert sum(int(row["order quantity"]) for row in rows) == int(alone["order quantity"])
    assert sum(float(row["total"]) for row in rows) == pytest.approx(float(alone["total"]))


@pytest.mark.parametrize(
    "lines, code",
    [
        ("1,NE555P,TI\n", 0),
        ("1,NE555P,TI\n2,SN74S74N,Texas Instruments\n", 0),
        ("1,NE555P,TI\n0,NO-SUCH-PART,\nTotal:,1\n", 0),  # not fitted, and no line
        ("1,NE555P,TI\n1,NO-SUCH-PART,\n", 1),
        ("1,NE555P,TI\n1,,TI\n", 1),  # left out
        ("1,NE555P,TI\n1,9.5E+12,\n", 1),
        ("1,NE555P,TI\n1,LM358N,TI,SOIC\n", 1),
        ("1,MAX3232ESE,Maxim\n", 1),  # a doubt
        ("1,NO-SUCH-PART,\n", 3),
        ("1,NE555P,Murata\n1,-,\n", 3),
        ("1,9.5E+12,\n", 3),
    ],
)
async def test_exit_code_says_whether_all_lines_have_what_was_asked(filled: Filled, lines: str, code: int) -> None:
    _, _, done = await filled(f"Qty,MPN,Manufacturer\n{lines}", columns="price")
    assert done.code == code, done


@pytest.mark.parametrize("sku", ["470-82568455-2-ND", "470-82568455-2-nd", " 470 82568455-2-ND"])
async def test_offer_of_the_list_s_number_is_taken_unless_any_is(filled: Filled, sku: str) -> None:
    text = f"Qty,MPN,Digi-Key Part Number\n10,NE5532P,{sku}\n"
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
