"""Tests of the names of columns in several languages."""

import pytest
from support import cases

from proxy.traffic import bom_columns

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


def test_named_column_replaces_the_recognized_one() -> None:
    assert bom_columns.columns(["MPN", "Type"], {"mpn": "TYPE"}) == {"mpn": 1}
    assert bom_columns.columns(["MPN", "Value"], {"mpn": "Type"}) == {}


@pytest.mark.parametrize(
    "data, name",
    [
        (b"\xff\xfem\0p\0", "utf-16"),
        (b"\xfe\xff\0m\0p", "utf-16"),
        (b"\xef\xbb\xbfmpn", "utf-8-sig"),
        ("Würth".encode(), "utf-8-sig"),
        ("Würth".encode("cp1252"), "cp1252"),
    ],
)
def test_encoding_is_detected(data: bytes, name: str) -> None:
    assert bom_columns.encoding(data) == name


@pytest.mark.parametrize("delimiter", bom_columns.DELIMITERS)
def test_delimiter_is_detected_by_the_header(delimiter: str) -> None:
    text = f"a,b;c\nMPN{delimiter}Menge{delimiter}Hersteller\nX,1{delimiter}2{delimiter}TI, Inc.\n"
    assert bom_columns.delimiter(text) == delimiter
