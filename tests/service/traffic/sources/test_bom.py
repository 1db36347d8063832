"""Tests of bills of materials, as CSV and as workbooks."""

import json
from typing import Any

import pytest
from support.workbooks import workbook

from proxy import errors
from proxy.traffic import bom_columns
from proxy.traffic.sources import bom


def queries(found: Any) -> Any:
    """The queries of each request."""
    return [json.loads(request.values("queries")[0]) for request in found.requests]


SMALL = "Qty,MPN,Manufacturer\n1,LM358N,Texas Instruments\n2,BC547,\n"
WANTED = [[{"mpn": "LM358N", "brand": "Texas Instruments", "reference": "2"}, {"mpn": "BC547", "reference": "3"}]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_csv_is_read_with_any_delimiter_and_encoding(read_source: Any, delimiter: str, encoding: str) -> None:
    found = read_source("bom.csv", SMALL.replace(",", delimiter).encode(encoding))
    assert (found.source.kind, queries(found)) == ("csv", WANTED)
    assert (found.junk, found.requests[0].origin, found.requests[0].path) == ([], "bom.csv:2-3", "/parts/match")


@pytest.mark.parametrize("name", [name for key in bom_columns.NUMBERS for name in bom_columns.HEADINGS[key][:12]])
@pytest.mark.parametrize(
    "spelt", [str.upper, str.title, lambda name: name.replace(" ", "_"), lambda name: f" {name}. # "]
)
def test_column_has_many_recognized_names(read_source: Any, name: Any, spelt: Any) -> None:
    key = next(key for key in bom_columns.NUMBERS if name in bom_columns.HEADINGS[key])
    assert queries(read_source("bom.csv", f"Line,{spelt(name)}\n1,ABC\n")) == [[{key: "ABC", "reference": "2"}]]


def test_manufacturer_part_number_is_preferred_to_an_internal_one(read_source: Any) -> None:
    found = read_source("bom.csv", "Part Number,Manufacturer Part Number\nINT-001,LM358N\n")
    assert queries(found)[0][0]["mpn"] == "LM358N"


def test_sku_is_used_without_part_number(read_source: Any) -> None:
    found = read_source("bom.csv", "mpn,mfr,sku,seller\nLM358N,TI,67K1122,Newark\n,,67K1122,Newark\n")
    assert queries(found)[0] == [
        {"mpn": "LM358N", "brand": "TI", "reference": "2"},
        {"sku": "67K1122", "seller": "Newark", "reference": "3"},
    ]


def test_header_below_titles_is_found_with_row_numbers(read_source: Any) -> None:
    found = read_source("bom.csv", "Project;Robot\nDate;1.5.2024\n\nPos;Mfr. Part No.\n1;LM358N\n\n2;BC547\n")
    assert [each["reference"] for each in queries(found)[0]] == ["5", "7"]


def test_request_has_twenty_queries(read_source: Any) -> None:
    found = read_source("bom.csv", "mpn\n" + "".join(f"PART{n}\n" for n in range(45)))
    assert [len(each) for each in queries(found)] == [20, 20, 5]
    assert [request.origin for request in found.requests] == ["bom.csv:2-21", "bom.csv:22-41", "bom.csv:42-46"]


def test_request_stays_below_the_length_limit_of_v3(read_source: Any) -> None:
    found = read_source("bom.csv", "mpn,brand\n" + "".join(f"{'Ω' * 60}{n},{'Ω' * 60}\n" for n in range(30)))
    assert sum(map(len, queries(found))) == 30
    assert max(len(request.target()) for request in found.requests) < 8000


def test_rows_without_number_are_counted_and_duplicates_skipped(read_source: Any) -> None:
    rows = ["LM358N,TI", ",TI", "n/a ,", "--,TI", "LM358N,TI", '"AB\nCD",TI', f"{'X' * 201},TI", ",,,", "BC547,TBD"]
    found = read_source("bom.csv", "mpn,brand\n" + "\n".join(rows))
    assert [(each["mpn"], each.get("brand")) for each in queries(found)[0]] == [("LM358N", "TI"), ("BC547", None)]
    assert found.junk == [(bom.NO_NUMBER, 3, "bom.csv:3"), (bom.BROKEN, 1, "bom.csv:7"), (bom.LONG, 1, "bom.csv:9")]
    assert found.skipped == [(bom.AGAIN, 1, "bom.csv:6")]


def test_unclosed_quote_is_reported(read_source: Any) -> None:
    found = read_source("bom.csv", 'mpn\nLM358N\n"BC547\n' + "X\n" * 100)
    assert ([len(each) for each in queries(found)], found.junk) == ([1], [(bom.BROKEN, 1, "bom.csv:3")])
    found = read_source("bom.csv", 'mpn\nLM358N\n"BC547\n' + "X\n" * 100_000)
    assert ([len(each) for each in queries(found)], found.junk) == ([1], [(bom.CSV_BROKEN, 1, "bom.csv:3")])


def test_missing_part_number_column_lists_found_and_known_columns(read_source: Any) -> None:
    with pytest.raises(errors.SourceError) as raised:
        read_source("bom.csv", "Pos,Designator,Value\n1,R1,10k\n")
    assert "bom.csv:1: no column of part numbers, which are named like mpn, " in raised.value.message
    assert raised.value.message.endswith(
        "--column mpn=NAME names another; the columns are 'Pos', 'Designator', 'Value'"
    )


OWN = {"mpn": "Teilenummer", "brand": "Hersteller", "sku": "Bestell-Nr.", "seller": "Lieferant"}
TABLE = [["Stückliste"], ["Pos", "Bestell-Nr", "HERSTELLER", "Lieferant", "Teilenummer"]]
ROWS = [["1", "", "TI", "", "LM358N"], ["2", "67K1122", "", "Newark", ""]]


@pytest.mark.parametrize("kind", ["csv", "xlsx", "no name"])
def test_columns_can_be_named(read_source: Any, kind: str) -> None:
    rows = [*TABLE, *ROWS]
    text = "\n".join(";".join(row) for row in rows)
    found = read_source(f"bom.{kind}", workbook(rows) if kind == "xlsx" else text, named=OWN)
    assert [{name: value for name, value in each.items() if name != "reference"} for each in queries(found)[0]] == [
        {"mpn": "LM358N", "brand": "TI"},
        {"sku": "67K1122", "seller": "Newark"},
    ]


def test_named_column_is_preferred_to_a_recognized_one(read_source: Any) -> None:
    assert queries(read_source("bom.csv", "MPN,Alternative\nA,B\n", named={"mpn": "alternative"}))[0][0]["mpn"] == "B"


def test_missing_named_columns_are_listed_with_existing_ones(read_source: Any) -> None:
    with pytest.raises(errors.SourceError) as raised:
        read_source("bom.csv", "MPN,Maker,Qty\nA,TI,1\n", named={"brand": "Made by", "seller": "Shop", "mpn": "MPN"})
    assert raised.value.message.endswith(
        "bom.csv:1: no column 'Made by', 'Shop'; the columns are 'MPN', 'Maker', 'Qty'"
    )


def test_error_for_another_file_shows_no_api_key(read_source: Any) -> None:
    with pytest.raises(errors.SourceError) as raised:
        read_source("log.csv", "id;/v3/parts/match?apikey=s3cret&x=1\n", kind="csv")
    assert raised.value.message.endswith("the columns are 'id', '/v3/parts/match?apikey=…&x=1'")


def test_file_without_columns_accepts_no_named_column(read_source: Any) -> None:
    with pytest.raises(errors.SourceError, match="has no columns to be named with --column, read as urls"):
        read_source("urls.txt", "/v3/parts/search?q=x\n", named={"mpn": "x"})


def test_workbook_uses_its_first_sheet_with_part_numbers(read_source: Any) -> None:
    cover = [["Robot"], ["made by", "me"]]
    parts: list[list[str | int | float]] = [
        ["Bill of materials"],
        [],
        ["Pos", "MPN", "Manufacturer"],
        [1, "LM358N", "TI"],
        [2, 7400, ""],
        [3, 1.5, "A"],
    ]
    found = read_source("bom.xlsx", workbook(cover, parts))
    assert queries(found) == [
        [
            {"mpn": "LM358N", "brand": "TI", "reference": "4"},
            {"mpn": "7400", "reference": "5"},
            {"mpn": "1.5", "brand": "A", "reference": "6"},
        ]
    ]
    assert found.source.kind == "xlsx"


def test_workbook_is_recognized_by_content(read_source: Any) -> None:
    assert read_source("parts", workbook([["mpn"], ["LM358N"]])).source.kind == "xlsx"


@pytest.mark.parametrize(
    "content",
    [workbook([["mpn"], ["X"]])[:300], b"PK\x03\x04" + b"\0" * 99, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600],
)
def test_unreadable_workbook_is_an_error(read_source: Any, content: Any) -> None:
    with pytest.raises(errors.SourceError, match="is not a readable workbook"):
        read_source("bom.xlsx", content)


def test_zip_bomb_workbook_is_refused(read_source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bom, "UNPACKED_MAX", 1000)
    with pytest.raises(errors.SourceError, match="is larger than a list of parts can be"):
        read_source("bom.xlsx", workbook([["mpn"], ["X" * 10_000]]))


def test_missing_workbook_reader_names_the_extra(read_source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(errors.SourceError, match=r"pip install '\.\[xlsx\]'"):
        read_source("bom.xlsx", workbook([["mpn"], ["X"]]))


def test_too_large_csv_is_refused(read_source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bom, "SIZE_MAX", 100)
    with pytest.raises(errors.SourceError, match="is larger than a list of parts can be"):
        read_source("bom.csv", "mpn\n" + "X\n" * 100)
