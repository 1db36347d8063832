"""Tests of bills of materials."""

import json
from typing import Any

import pytest

from proxy import errors
from proxy.traffic import bom_columns, parts_list


def queries(found: Any) -> Any:
    """The queries of each request."""
    return [json.loads(request.values("queries")[0]) for request in found.requests]


SMALL = "Qty,MPN,Manufacturer\n1,LM358N,Texas Instruments\n2,BC547,\n"
WANTED = [[{"mpn": "LM358N", "brand": "Texas Instruments", "reference": "2"}, {"mpn": "BC547", "reference": "3"}]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_csv_is_read_with_any_delimiter_and_encoding(read_source: Any, delimiter: str, encoding: str) -> None:
    found = read_source("bom.csv", SMALL.replace(",", delimiter).encode(encoding))
    assert queries(found) == WANTED
    assert (found.skipped, found.requests[0].origin, found.requests[0].path) == ([], "bom.csv:2-3", "/parts/match")


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
    reasons = (parts_list.NO_NUMBER, 3, 3), (parts_list.AGAIN, 1, 6), (parts_list.BROKEN, 1, 7), (parts_list.LONG, 1, 9)
    assert found.skipped == [(reason, times, f"bom.csv:{row}") for reason, times, row in reasons]


def test_unclosed_quote_is_reported(read_source: Any) -> None:
    found = read_source("bom.csv", 'mpn\nLM358N\n"BC547\n' + "X\n" * 100)
    assert ([len(each) for each in queries(found)], found.skipped) == ([1], [(parts_list.LONG, 1, "bom.csv:3")])
    found = read_source("bom.csv", 'mpn\nLM358N\n"BC547\n' + "X\n" * 100_000)
    assert ([len(each) for each in queries(found)], found.skipped) == ([1], [(parts_list.NO_CSV, 1, "bom.csv:3")])


def test_missing_part_number_column_lists_found_and_known_columns(read_source: Any) -> None:
    with pytest.raises(errors.SourceError) as raised:
        read_source("bom.csv", "Pos,Designator,Value\n1,R1,10k\n")
    assert "bom.csv:1: no column of part numbers, which are named like mpn, " in raised.value.message
    assert raised.value.message.endswith("or in another language; the columns are 'Pos', 'Designator', 'Value'")


def test_error_for_another_file_shows_no_api_key(read_source: Any) -> None:
    with pytest.raises(errors.SourceError) as raised:
        read_source("log.csv", "id;/v3/parts/match?apikey=s3cret&x=1\n")
    assert raised.value.message.endswith("the columns are 'id', '/v3/parts/match?apikey=…&x=1'")


def test_too_large_csv_is_refused(read_source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_list, "SIZE_MAX", 100)
    with pytest.raises(errors.SourceError, match="is larger than a list of parts can be"):
        read_source("bom.csv", "mpn\n" + "X\n" * 100)
