"""Bills of materials: their columns in several languages, and how they are read."""

import json
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.traffic import bom_columns, reading


def queries(found: Any) -> Any:
    return [json.loads(request.values("queries")[0]) for request in found.requests]


SMALL = "a,b;c\nMenge/MPN/Hersteller\n1/LM358N/Würth\n2/BC547/\n"
WANTED = [[{"mpn": "LM358N", "brand": "Würth", "reference": "3"}, {"mpn": "BC547", "reference": "4"}]]
MARK = "\ufeff"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "encoding, mark", [("utf-8", ""), ("utf-8", MARK), ("utf-16-le", MARK), ("utf-16-be", MARK), ("cp1252", "")]
)
def test_csv_is_read_with_any_delimiter_and_encoding(
    read_source: Any, delimiter: str, encoding: str, mark: str
) -> None:
    found = read_source("bom.csv", (mark + SMALL.replace("/", delimiter)).encode(encoding))
    assert queries(found) == WANTED
    assert (found.skipped, found.requests[0].origin, found.requests[0].path) == ([], "bom.csv:3-4", "/parts/match")


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
    reasons = (reading.NO_NUMBER, 3, 3), (reading.AGAIN, 1, 6), (reading.BROKEN, 1, 7), (reading.LONG, 1, 9)
    assert found.skipped == [(reason, times, f"bom.csv:{row}") for reason, times, row in reasons]


@pytest.mark.parametrize(
    "rows",
    [
        *('BC547,"1/4 spacer,2\nX,x,1\n', '"BC547,x,2', '"BC547,x,2\n', 'BC547,"x,2\n' + "X,x,1\n" * 100_000),
        # The quote is closed by one of another row: amid its text, or at the end of a cell.
        *('BC547,"1/4 spacer,2\nX,"a, b",1\nY,y,1\n', 'BC547,"1/4 spacer,2\nX,x,1\nY,cable 6",1\n'),
    ],
)
def test_unclosed_quote_is_reported(read_source: Any, rows: str) -> None:
    found = read_source("bom.csv", f"mpn,description,qty\nLM358N,x,1\n{rows}")
    assert ([len(each) for each in queries(found)], found.skipped) == ([1], [(bom_columns.BROKEN, 1, "bom.csv:3")])


@pytest.mark.parametrize(
    "row",
    [
        *('A1,1/4" spacer,2', 'A1,"1/4" spacer,2', 'A1,6",2', 'A1,"a\nb, ""c"", 2\n\nd",2', 'A1,x,"2\n"'),
        '"A1","x,2\r\ny,1\r\nz",2',
    ],
)
def test_inch_marks_and_cells_of_several_lines_are_text(read_source: Any, row: str) -> None:
    found = read_source("bom.csv", f"mpn,description,qty\n{row}\nB2,x,1\n")
    assert ([each["mpn"] for each in queries(found)[0]], found.skipped) == (["A1", "B2"], [])


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
    monkeypatch.setattr(reading, "SIZE_MAX", 100)
    with pytest.raises(errors.SourceError, match="is larger than a list of parts can be"):
        read_source("bom.csv", "mpn\n" + "X\n" * 100)


HEADERS = {
    "de": "Pos;Menge;Hersteller;Hersteller-Teilenummer;Bestell-Nr.;Lieferant",
    "fr": "Repère;Quantité;Fabricant;Référence fabricant;Réf. fournisseur;Fournisseur",
    "es": "Pos.;Cantidad;Fabricante;Número de pieza del fabricante;Referencia proveedor;Proveedor",
    "it": "Pos;Q.tà;Produttore;Codice produttore;Codice fornitore;Fornitore",
    "pt": "Item;Qtd.;Fabricante;Código do fabricante;Código do fornecedor;Fornecedor",
    "nl": "Nr;Aantal;Fabrikant;Artikelnummer fabrikant;Bestelnummer;Leverancier",
    "pl": "Lp;Ilość;Producent;Numer katalogowy producenta;Kod dostawcy;Dostawca",
    "sv": "Rad;Antal;Tillverkare;Tillverkarens artikelnummer;Artikelnummer leverantör;Leverantör",
    "cs": "Poz;Množství;Výrobce;Číslo dílu výrobce;Objednací číslo;Dodavatel",
    "ru": "№;Кол-во;Производитель;Артикул производителя;Код поставщика;Поставщик",
    "zh": "序号;数量;制造商;制造商零件编号;商品编号;供应商",
    "zh-TW": "項次;數量;製造商;製造商料號;供應商料號;供應商",
    "ja": "No;員数;メーカー名;メーカー型番;発注コード;仕入先",
    "ko": "번호;수량;제조사;제조사 부품번호;공급업체 품번;공급업체",
    "KiCost": "Refs;Qty;manf;manf#;digikey#;vendor",
    "Mouser": "Line;Order Qty.;Mfr. Name;Mfr. #;Order No.;Supplier",
    "Altium": "Line #;Quantity;Manufacturer 1;Manufacturer Part Number 1;Supplier Part Number 1;Supplier 1",
}


@pytest.mark.parametrize("language", HEADERS)
def test_columns_are_recognized_in_many_languages(language: str) -> None:
    places = bom_columns.columns(HEADERS[language].split(";"))
    assert places.items() >= {"quantity": 1, "brand": 2, "mpn": 3, "seller": 5}.items()
    assert places.get("sku", 4) == 4


@cases.parametrize("header, index")
def test_number_of_the_manufacturer_is_preferred_to_any_other(header: str, index: int) -> None:
    assert bom_columns.columns(header.split(";"))["mpn"] == index


@cases.parametrize("header, expected")
def test_headings_of_programs_are_recognized(header: str, expected: dict[str, int]) -> None:
    assert bom_columns.columns(header.split(",") if "," in header else header.split(";")) == expected
