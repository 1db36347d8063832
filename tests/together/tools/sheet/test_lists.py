"""Lists as people bring them: each is the smallest form of a public report, or of what a program exports, with its
right result."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import cases
from support.running_commands import ROOT, Run

from proxy.traffic import bom_columns

COLUMNS = "mpn,price,needed,order_quantity,total,sku,distributor"
Filled = Callable[..., Any]
EXPORTED = ROOT / "examples/boms"
PARTS = {"1N4007": ("onsemi", 2), "LM317T": ("STMicroelectronics", 1), "SN74S74N": ("Texas Instruments", 2)}
OTHERS = {"jlcpcb": {"1N4007": ("onsemi", 2), "GRM188R71H104KA93D": ("Murata", 5)}}
VALUES_ONLY = ("kicad", "kicad-pcb")  # without manufacturers, so that the maker is not known


@pytest.fixture
def filled(fill: Run, tmp_path: Path) -> Filled:
    """Fills a list; its rows by the names of columns, its summary and the command's end."""

    def run(text: str, *options: str, columns: str = COLUMNS) -> tuple[list[dict[str, str]], Any, Any]:
        (tmp_path / "BOM.csv").write_text(text, encoding="utf-8")
        done = fill("BOM.csv", "--columns", columns, "--offers", "none", "--yes", "--json", *options)
        assert done.stdout, done
        summary = json.loads(done.stdout)
        with (tmp_path / summary["output"]).open(newline="", encoding="utf-8") as stream:
            header, *rows = csv.reader(stream)
        names = [heading.removeprefix("Nexar ").removesuffix(" USD") for heading in header]
        return [dict(zip(names, row, strict=False)) for row in rows], summary, done

    return run


@cases.parametrize("text, code, spent, rows, said")
def test_list_has_its_right_result(
    filled: Filled, text: str, code: int, spent: int, rows: list[dict[str, str]], said: list[str]
) -> None:
    found, summary, done = filled(text)
    assert (done.returncode, summary["parts_spent"]) == (code, spent), done
    for row, expected in zip(found, rows, strict=True):
        assert {name: row.get(name, "") for name in expected} == expected
    for each in said:
        assert each in done.stderr


@pytest.mark.parametrize("file", sorted(EXPORTED.iterdir()), ids=lambda file: file.stem)
def test_exported_list_is_filled_without_an_option(fill: Run, tmp_path: Path, file: Path) -> None:
    shutil.copy(file, tmp_path)
    result = fill(file.name, "--columns", "mpn,manufacturer,total,price", "--offers", "none")
    data = (tmp_path / f"{file.stem}.filled{file.suffix}").read_bytes()
    text = data.decode(bom_columns.encoding(data))
    rows = csv.DictReader(text.splitlines(), delimiter=bom_columns.delimiter(text))
    found = {
        row["Nexar MPN"]: (
            row["Nexar manufacturer"],
            round(float(row["Nexar total USD"]) / float(row["Nexar price USD"])),
        )
        for row in rows
        if row["Nexar MPN"]
    }
    expected = OTHERS.get(file.stem, PARTS)
    if file.stem in VALUES_ONLY:
        assert found.keys() == expected.keys()
        assert "note: no column of part numbers: values are taken for them" in result.stderr
    else:
        assert (found, result.returncode) == (expected, 0), result


def test_part_on_several_lines_is_bought_once(filled: Filled) -> None:
    """At the minimum of 5 000 pieces, however it is spelled; the lines pay as much as one line of as many pieces."""
    numbers = ("RC0603FR-071KL,Yageo", "rc0603fr071kl,YAGEO", "RC0603FR 071KL,")
    lines = [f"{quantity},{number}\n" for quantity, number in zip((3, 3, 4994), numbers, strict=True)]
    rows, summary, done = filled("".join(["Qty,MPN,Manufacturer\n", *lines]))
    assert [row["order quantity"] for row in rows] == ["3", "3", "4994"]
    assert sum(float(row["total"]) for row in rows) == pytest.approx(187.15)
    assert summary["totals"][-1] == {"distributor": "All", "lines": 3, "total": "187.15"}
    assert "note: RC0603FR-071KL on rows 2, 3, 4 is bought once, 5,000 in all" in done.stderr


def test_price_break_and_multiple_are_those_of_the_sum(filled: Filled) -> None:
    lists = {
        "NE555P,Texas Instruments": (400, 350, 250),  # its price falls at 1 000
        "1N4007,onsemi": (1, 4999, 7),  # in multiples
    }
    head = "Qty,MPN,Manufacturer\n"
    whole, *_ = filled(head + "".join(f"{sum(quantities)},{part}\n" for part, quantities in lists.items()))
    rows, *_ = filled(head + "".join(f"{each},{part}\n" for part, quantities in lists.items() for each in quantities))
    for number, alone in enumerate(whole):
        own = rows[3 * number : 3 * number + 3]
        assert {(row["price"], row["SKU"]) for row in own} == {(alone["price"], alone["SKU"])}
        assert sum(int(row["order quantity"]) for row in own) == int(alone["order quantity"])
        assert sum(float(row["total"]) for row in own) == pytest.approx(float(alone["total"]))


@pytest.mark.parametrize(
    "lines, code",
    [
        ("1,NE555P,TI\n0,NO-SUCH-PART,\nTotal:,1\n", 0),  # not fitted, and no line
        ("1,NE555P,TI\n1,NO-SUCH-PART,\n", 1),
        ("1,NE555P,TI\n1,,TI\n", 1),  # left out
        ("1,NE555P,TI\n1,LM358N,TI,SOIC\n", 1),
        ("1,MAX3232ESE,Maxim\n", 1),  # a doubt
        ("1,NE555P,Murata\n1,9.5E+12,\n", 3),
    ],
)
def test_exit_code_says_whether_all_lines_are_found(filled: Filled, lines: str, code: int) -> None:
    _, _, done = filled(f"Qty,MPN,Manufacturer\n{lines}", columns="price,price:Samtec")  # which sells none of them
    assert done.returncode == code, done


def test_offer_of_the_list_s_number_is_taken_unless_any_is(filled: Filled) -> None:
    text = "Qty,MPN,Digi-Key Part Number\n10,NE5532P,470 82568455-2-nd\n"
    [own, best], _, done = filled(f"{text}10,NE5532P,NO-SUCH-1-ND\n")
    assert (own["SKU"], own["order quantity"], best["SKU"]) == ("470-82568455-2-ND", "1000", "NE5532P")
    assert "note: row 3: no offer has the number NO-SUCH-1-ND: the best one is taken" in done.stderr
    [cheapest], *_ = filled(text, "--any-offer")
    assert (cheapest["SKU"], cheapest["order quantity"]) == ("NE5532P", "10")


def test_only_offers_of_distributors_and_packagings_count(filled: Filled) -> None:
    text, columns = "Qty,MPN,Manufacturer\n10,NE5532P,Texas Instruments\n", "distributor,packaging,price"
    own = ("--only-distributors", "Mouser,Digi-Key", "--packaging", "cut tape, reel, tube")
    [row], *_ = filled(text, *own, columns=columns)
    assert row["distributor"] in ("Mouser", "Digi-Key")
    assert row["packaging"] in ("Cut Tape", "Tape & Reel", "Tube")
    [row], summary, done = filled(text, "--packaging", "ammo pack", columns="price")
    assert (done.returncode, summary["not_priced"]) == (1, 1)
    assert row["status"] == "found, not priced: no offer counts (--packaging ammo pack)"


def test_list_that_is_filled_again_says_what_changed(filled: Filled, tmp_path: Path) -> None:
    columns = "price,stock,lead_time,mpn,manufacturer"
    text = "Qty,MPN,Manufacturer\n10,NE5532P,Texas Instruments\n1,NE555P,Texas Instruments\n"
    _, summary, _ = filled(text, columns=columns)
    assert summary["changed"] == []
    with (tmp_path / "BOM.filled.csv").open(newline="") as stream:
        header, first, second = csv.reader(stream)
    first[3:6] = ["0.41053", "5", "9999"]
    first[7] = "onsemi"
    lines = [",".join(f'"{cell}"' for cell in row) for row in (header, first, second)]
    rows, summary, done = filled("\n".join(lines) + "\n", columns=columns)
    [changed] = summary["changed"]
    assert changed.startswith("row 2, NE5532P: price USD 0.41053 → 0.82106 (+100%), lead time days 9999 → ")
    assert changed.endswith("manufacturer onsemi → Texas Instruments")
    assert f"changed: {changed}" in done.stderr
    assert [row["price"] for row in rows] == ["0.82106", "0.26778"]  # its own columns are updated
