"""Tables that no program wrote: filled or refused in one line, and every query can be sent."""

from decimal import Decimal
from pathlib import Path

import orjson
import pytest
from support.workbooks import hostile

from proxy import errors
from proxy.tools.sheet.columns import csv_table, job, specs
from proxy.tools.sheet.parts import Offer, Part, PartResult, Price

COLUMNS = specs.ColumnSet(specs.parse_list("price,price@100,stock,moq"))
PRICES = (Price(1, Decimal("1.23456"), "USD"), Price(100, Decimal("0.5"), "USD"))
PART = Part("X", "Maker", offers=(Offer("459", "Digi-Key", True, sku="-1", stock=5, moq=1, prices=PRICES),))


def _fill(file: Path, target: Path) -> int:
    """Fill every line with the same part; return the number of lines."""
    filling = job.ColumnsJob(csv_table.CsvTable(file), COLUMNS, now=1e9)
    for query in filling.queries:
        assert orjson.loads(orjson.dumps(query._asdict())) == query._asdict()
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


def test_second_header_is_no_part(tmp_path: Path) -> None:
    file = tmp_path / "bom.csv"
    file.write_text("MPN,Qty\nA,1\nmpn,qty\nB,2\n")
    assert _fill(file, tmp_path / "filled.csv") == 2
