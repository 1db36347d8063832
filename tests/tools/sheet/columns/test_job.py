"""Tests of columns filled in CSV files, from a source in memory."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import cases
from support.workbooks import hostile
from tools.sheet.filled_columns import NOW, REEL, Bom, Fill, columns, filling, rows_of
from tools.sheet.part_source import MemoryPartSource

from proxy import errors
from proxy.tools.sheet import fill
from proxy.tools.sheet.columns import csv_table, job, quantities, specs
from proxy.tools.sheet.columns.job import ColumnsJob
from proxy.tools.sheet.columns.lines import TableReading
from proxy.tools.sheet.offers import OfferRules
from proxy.tools.sheet.parts import (
    STALE_SECONDS,
    Offer,
    Part,
    PartOfSource,
    PartQuery,
    PartResult,
    Price,
    SimilarPart,
)


def test_csv_gets_columns_right_of_its_data(fill_table: Fill, bom: Bom, tmp_path: Path) -> None:
    file, target = bom("Project X\nRef,MPN,Qty\nU1,LM358N,150\nU2,NOPE,1,a note\n,Total,151\n")
    counts = fill_table(csv_table.CsvTable(file), target, "price@100,price,stock,lead_time,datasheet")
    assert rows_of(target) == [
        ["Project X"],
        [
            *("Ref", "MPN", "Qty", "", "Nexar price @100 USD", "Nexar price USD", "Nexar stock"),
            *("Nexar lead time days", "Nexar datasheet", "Nexar status"),
        ],
        ["U1", "LM358N", "150", "", "0.3", "0.3", "9500", "42", "https://d.example/lm358.pdf", "found"],
        ["U2", "NOPE", "1", "a note", "", "", "", "", "", "not found"],
        ["", "Total", "151"],
    ]
    assert counts == {
        "found": 1,
        "no value": 0,
        "not found": 1,
        "stale": 0,
        "ambiguous": 0,
        "failed": 0,
        "not fetched": 0,
    }
    offers = rows_of(tmp_path / "BOM.offers.csv")
    assert [row[3] for row in offers] == ["Distributor", "Digi-Key", "Mouser"]
    assert offers[1][:15] == [
        *("3", "LM358N", "Texas Instruments", "Digi-Key", "TRUE", "TRUE", "296-1", "500", "1", "1", "42", "Tube"),
        *("150", "0.3", "45"),
    ]


def test_second_run_updates_its_own_columns(fill_table: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    file, first, second = (tmp_path / name for name in ("BOM.csv", "BOM.filled.csv", "BOM.filled-2.csv"))
    file.write_text("MPN,Stock\nLM358N,mine\n")
    fill_table(csv_table.CsvTable(file), first, "stock,price")
    source.cache.clear()
    source.parts = {"LM358N": Part("LM358N", "TI", offers=(REEL,))}
    fill_table(csv_table.CsvTable(first), second, "price,moq,stock")
    assert rows_of(second) == [
        ["MPN", "Stock", "Nexar stock", "Nexar price USD", "Nexar status", "Nexar MOQ"],
        ["LM358N", "mine", "9000", "0.1", "found", "2500"],
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_keeps_encoding_delimiter_and_line_ends(
    fill_table: Fill, tmp_path: Path, encoding: str, delimiter: str, end: str
) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    text = f'Würth,MPN,"a ""b"""{end}x, LM358N,"two\nlines"{end}y,NOPE,{end}'.replace(",", delimiter)
    file.write_bytes(text.encode(encoding))
    fill_table(csv_table.CsvTable(file), target, "package")
    header = f'Würth,MPN,"a ""b""",Nexar package,Nexar status{end}'
    expected = f'{header}x, LM358N,"two\nlines",DIP-8,found{end}y,NOPE,,,not found{end}'
    assert target.read_bytes() == expected.replace(",", delimiter).encode(encoding)


def test_decimal_comma_of_the_file_is_used(fill_table: Fill, bom: Bom) -> None:
    file, target = bom("MPN;Preis\nLM358N;1,50\n")
    fill_table(csv_table.CsvTable(file), target, "price")
    assert target.read_text().endswith("LM358N;1,50;0,6;found\n")


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1"])
def test_text_that_looks_like_a_formula_is_quoted_in_csv(bom: Bom, text: str) -> None:
    file, target = bom("MPN\nA1\n")
    source = MemoryPartSource({"A1": Part("A1", text, short_description="op amp @ 5 V")}, now=NOW)
    filling(source)(csv_table.CsvTable(file), target, "manufacturer,description")
    assert rows_of(target)[1] == ["A1", f"'{text}", "op amp @ 5 V", "found"]


def test_bytes_and_characters_beyond_the_encoding_survive(fill_table: Fill, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_bytes(b"MPN,M\xfcller\nLM358N,\x81\x8d\n")
    fill_table(csv_table.CsvTable(file), target, "stock:Дистрибьютор")
    filled = b"MPN,M\xfcller,Nexar stock " + b"?" * 12 + b",Nexar status\nLM358N,\x81\x8d,,"
    filled += b'"found, without stock ' + b"?" * 12 + b'"\n'
    assert target.read_bytes() == filled


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n1,2\n", b"PK\x00\x01\x00", b"\xd0\xcf\x11\xe0\0\0"])
def test_file_without_part_numbers_is_an_error_that_names_it(fill_table: Fill, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "BOM.csv"
    file.write_bytes(content)
    with pytest.raises(errors.SheetError, match=r"BOM\.csv: "):
        fill_table(csv_table.CsvTable(file), tmp_path / "out.csv", "price")
    assert not (tmp_path / "out.csv").exists()


def test_ambiguous_failed_and_stale_lines_say_so(fill_table: Fill, source: MemoryPartSource, bom: Bom) -> None:
    file, target = bom("MPN,Manufacturer\nLM358N,\nLM358N,TI\nBROKEN,\n1234567,\n")
    source.hits["LM358N"] = 3
    source.errors["BROKEN"] = "=timeout"
    job = ColumnsJob(csv_table.CsvTable(file), columns("package"), now=NOW + 3600)
    asyncio.run(fill.fetch(job, source, asyncio.Event()))
    job.add(source.cache[PartQuery("1234567")]._replace(fetched=NOW - STALE_SECONDS))
    assert {name: count for name, count in job.write(target).items() if count} == dict.fromkeys(
        ("ambiguous", "found", "failed", "stale"), 1
    )
    assert [row[3] for row in rows_of(target)[1:]] == [
        "ambiguous: 3 parts match, these values are of Texas Instruments: state the manufacturer",
        "found",
        "failed: =timeout",
        "stale: fetched 2023-11-13 22:13 UTC",
    ]


def test_distributors_number_is_tried_as_sku(source: MemoryPartSource, bom: Bom, tmp_path: Path) -> None:
    file, target = bom("Part Number,Manufacturer\n296-1395-5-ND,TI\nLM358N,\nC25804,\nNOPE,\n595-X12,\n")
    source.parts |= {"296-1395-5-ND": source.parts["LM358N"], "595-X12": source.parts["LM358N"]}
    source.only_sku = {"296-1395-5-ND"}
    job = ColumnsJob(csv_table.CsvTable(file), columns("mpn"), now=NOW)
    assert job.later_queries == 3
    end = asyncio.run(fill.fetch(job, source, asyncio.Event()))
    job.write(target)
    sku = "found: as distributor's number"
    assert [row[3] for row in rows_of(target)[1:]] == [sku, "found", "not found", "not found", "found"]
    assert (rows_of(target)[1][2], end.parts, end.results) == ("LM358N", 3, 7)
    offers = rows_of(csv_table.offers_file(target))
    assert offers[1][0] == "2"
    again, spent = tmp_path / "BOM.filled-2.csv", source.parts_spent
    options = {"rerun_failures": True, "fetched_before": lambda _: NOW}
    filling(source)(csv_table.CsvTable(target), again, "mpn", **options)
    assert (rows_of(again), rows_of(csv_table.offers_file(again))) == (rows_of(target), offers)
    assert source.parts_spent == spent


@pytest.mark.parametrize("hits, outcome", [(1, "found"), (2, "ambiguous")])
def test_number_of_two_makers_is_ambiguous(
    fill_table: Fill, source: MemoryPartSource, bom: Bom, tmp_path: Path, hits: int, outcome: str
) -> None:
    file, _ = bom("MPN\nLM358N\n")
    source.hits["LM358N"] = hits
    assert fill_table(csv_table.CsvTable(file), tmp_path / "out.csv", "package")[outcome] == 1


def test_failures_are_rerun_and_other_values_stay(fill_table: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.filled.csv", tmp_path / "out.csv"
    heading = "MPN,Nexar package,Nexar status\n"
    file.write_text(f"{heading}LM358N,OLD,found\n1234567,OLD,failed: timeout\nX,OLD,stale: since\n")
    ages = {PartQuery("LM358N"): NOW - 10, PartQuery("X"): NOW - STALE_SECONDS - 1}
    counts = fill_table(csv_table.CsvTable(file), target, "package", rerun_failures=True, fetched_before=ages.get)
    assert rows_of(target)[1:] == [
        ["LM358N", "OLD", "found"],
        ["1234567", "", "found, without package"],
        ["X", "OLD", "stale: fetched 2023-11-13 22:13 UTC"],
    ]
    assert (source.parts_spent, counts["stale"]) == (1, 1)
    fill_table(csv_table.CsvTable(file), target, "package", rerun_failures=True)
    assert rows_of(target)[1][2] == "stale: fetched at an unknown time"


def test_equal_lines_are_one_query_and_each_currency_another(bom: Bom) -> None:
    file, _ = bom("MPN,Mfr,SKU\nA,TI,\nA,TI,9\nA,,\n,TI,S1\n")
    job = ColumnsJob(csv_table.CsvTable(file), columns("price:EUR,price@5"), now=NOW)
    assert job.lines == 4
    assert job.queries == [
        *(PartQuery("A", "TI", "", "EUR"), PartQuery("A", "TI", "", "USD")),
        *(PartQuery("A", "", "", "EUR"), PartQuery("A", "", "", "USD")),
        *(PartQuery("", "", "S1", "EUR"), PartQuery("", "", "S1", "USD")),
    ]


@pytest.mark.parametrize(
    "names, rules, expected",
    [
        *cases.of(__file__, "columns_hold_what_they_name"),
        ("price,distributor,sku", {"distributors": ("mouser",)}, ["0.1", "Mouser", "595-1"]),
    ],
)
def test_columns_hold_what_they_name(
    fill_table: Fill, bom: Bom, names: str, rules: dict[str, Any], expected: list[str]
) -> None:
    file, target = bom("MPN\nLM358N\n")
    fill_table(csv_table.CsvTable(file), target, names, rules=OfferRules(**rules))
    assert rows_of(target)[1][1:-1] == expected


class _SmallTable(csv_table.CsvTable):
    """A table that holds three offers."""

    offers_max = 3


@pytest.mark.parametrize(
    "wanted, distributors, left_out",
    [(None, ["Mouser"] * 3, 3), (1, ["Mouser"] * 3, 0), (0, None, 0)],
)
def test_offers_are_the_best_that_fit(
    source: MemoryPartSource, bom: Bom, wanted: int | None, distributors: list[str] | None, left_out: int
) -> None:
    file, target = bom("MPN,Qty\nLM358N,5000\nLM358N,2500\nLM358N,7500\n")
    job = ColumnsJob(_SmallTable(file), columns("price", offers=wanted), now=NOW)
    said = "the sheet of offers holds 3, which is 1 for each line and currency"
    assert [note.partition(":")[0] for note in job.notes] == ([said] if wanted is None else [])
    asyncio.run(fill.fetch(job, source, asyncio.Event()))
    assert job.write(target)["found"] == 3
    offers = csv_table.offers_file(target)
    assert offers.exists() == (distributors is not None)
    assert distributors is None or [row[3] for row in rows_of(offers)[1:]] == distributors
    assert sum(job.reasons.values()) == left_out


def test_lines_without_a_value_are_counted_apart_with_their_reasons(
    fill_table: Fill, source: MemoryPartSource, bom: Bom
) -> None:
    file, target = bom("MPN\nLM358N\n1234567\nNOPE\nBROKEN\n")
    source.errors["BROKEN"] = "timeout"
    job = ColumnsJob(csv_table.CsvTable(file), columns("price@10,stock,manufacturer"), now=NOW)
    asyncio.run(fill.fetch(job, source, asyncio.Event()))
    counts = job.write(target)
    assert {name: count for name, count in counts.items() if count} == dict.fromkeys(
        ("found", "no value", "not found", "failed"), 1
    )
    assert rows_of(target)[2][-1] == "found, without price @10 USD, stock"
    assert job.reasons == dict.fromkeys(
        ("no value: price @10 USD", "no value: stock", "not found: no part has this number", "failed: timeout"), 1
    )
    ages = {PartQuery("1234567"): NOW, PartQuery("LM358N"): NOW}
    options: dict[str, Any] = {"rerun_failures": True, "fetched_before": ages.get}
    again = fill_table(csv_table.CsvTable(target), file, "price@10,stock,manufacturer", **options)
    assert (again["no value"], source.parts_spent) == (1, 2)


COLUMNS = specs.ColumnSet(specs.parse_list("price,price@100,stock,moq"))
PRICES = (Price(1, Decimal("1.23456"), "USD"), Price(100, Decimal("0.5"), "USD"))
PART = Part("X", "Maker", offers=(Offer("459", "Digi-Key", True, sku="-1", stock=5, moq=1, prices=PRICES),))


def _fill(file: Path, target: Path) -> int:
    """Fill every line with the same part; return the number of lines."""
    filling = job.ColumnsJob(csv_table.CsvTable(file), COLUMNS, now=1e9)
    for query in filling.queries:
        assert msgspec.json.decode(msgspec.json.encode(query._asdict())) == query._asdict()
        filling.add(PartResult(query, PART, 1, None, 1e9))
    counts = filling.write(target)
    assert counts["found"] + counts["no value"] == filling.lines
    return filling.lines


@pytest.mark.parametrize("name", [name for name in hostile.ODD | hostile.REFUSED if name.endswith(".csv")])
def test_odd_table_is_filled_or_refused(tmp_path: Path, name: str) -> None:
    file, target = tmp_path / name, tmp_path / "filled.csv"
    content = (hostile.ODD | hostile.REFUSED)[name]()
    file.write_bytes(content)
    refusal = ""
    try:
        _fill(file, target)
    except errors.SheetError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert bool(refusal) == (not target.exists())
    assert not (refusal == "" and name in hostile.REFUSED)
    assert file.read_bytes() == content


def test_bytes_of_no_encoding_are_written_back(tmp_path: Path) -> None:
    file, target = tmp_path / "bom.csv", tmp_path / "filled.csv"
    file.write_bytes(hostile.ODD["bytes of no encoding.csv"]())
    assert _fill(file, target) == 1
    assert target.read_bytes().splitlines()[1].startswith(b"SN\x81X\xff,1,")


def test_enormous_quantity_has_no_price(tmp_path: Path) -> None:
    file, target = tmp_path / "bom.csv", tmp_path / "filled.csv"
    file.write_bytes(hostile.ODD["enormous quantities.csv"]())
    assert _fill(file, target) == 2
    assert [b",,0.5," in line for line in target.read_bytes().splitlines()[1:]] == [True, True]


SOURCES = (
    PartOfSource("LM358N", "onsemi", (SimilarPart("MC1458", "onsemi"),)),
    PartOfSource("LM358N", "Texas Instruments", (SimilarPart("LM2904N", "TI"), SimilarPart("OPA2340", "TI"))),
)


def test_other_sources_of_a_number_and_alternatives_are_looked_up_once(
    fill_table: Fill, source: MemoryPartSource, bom: Bom
) -> None:
    file, target = bom("MPN,Mfr\nLM358N,Texas Instruments\nGONE,Texas Instruments\nNOPE,X\nBAD,X\n")
    source.sources = {"LM358N": SOURCES, "GONE": SOURCES[:1]}
    source.errors = {"BAD": "refused"}
    fill_table(csv_table.CsvTable(file), target, "second_source,alternatives")
    assert [row[2:] for row in rows_of(target)[1:]] == [
        ["onsemi", "LM2904N (TI); OPA2340 (TI)", "found"],
        ["onsemi", "MC1458 (onsemi)", "not found"],
        ["none", "none", "not found"],
        ["", "", "failed: refused"],
    ]
    assert source.parts_spent == 4
    job = ColumnsJob(csv_table.CsvTable(file), columns("second_source,alternatives"), now=NOW)
    assert len(job.queries) == 8
    assert job.notes == [
        "alternatives: the vendor does not say whether similar parts are billed, too; they are not counted here"
    ]


def test_what_is_needed_is_there_without_a_part_too(fill_table: Fill, bom: Bom) -> None:
    file, target = bom("MPN,Qty,Attrition\nLM358N,2,10\nNOPE,3,\n")
    reading = TableReading(build=quantities.Build(100))
    fill_table(csv_table.CsvTable(file), target, "needed,price,price@1", reading=reading)
    assert [row[3:] for row in rows_of(target)[1:]] == [["210", "0.3", "0.6", "found"], ["300", "", "", "not found"]]
    job = ColumnsJob(csv_table.CsvTable(file), columns("needed"), reading=reading, now=NOW)
    assert job.notes == ["quantities are those of 100 boards, with an attrition of 0 pieces unless stated"]
    assert "  attrition: C 'Attrition'" in job.recognized.messages()
