"""Columns of bills of materials: their names in several languages, the header row, encoding and delimiter of CSV.

`compare` reads such tables into requests, `sheet` fills them. Names are compared without case, accents, spaces and
punctuation, so that one name stands for many spellings.
"""

import codecs
import csv
import io
import unicodedata
from collections.abc import Mapping, Sequence

HEADER_ROWS = 30  # rows in which the header is searched for, because exports begin with titles
DELIMITERS = ",;\t|"
SAMPLE = 30  # rows that are examined to detect the delimiter
SAMPLE_CHARACTERS = 1 << 20
NUMBERS = ("mpn", "sku")  # keys of the columns of which a table needs one
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# By v3's key; the best names come first: those that name the manufacturer before those of any part number, because a
# company's own numbers are called so, too.
COLUMNS = {
    "mpn": (
        *("mpn", "manufacturer part number", "manufacturer part no", "manufacturer part", "manufacturer pn"),
        *("manufacturer product number", "mfr part number", "mfr part no", "mfr part", "mfr pn", "mfr no"),
        *("mfg part number", "mfg part no", "mfg part", "mfg pn", "part number", "part no", "partno", "pn"),
    ),
    "brand": ("manufacturer", "manufacturer name", "mfr", "mfr name", "mfg", "mfg name", "brand", "maker"),
    "sku": (
        *("sku", "distributor part number", "distributor pn", "supplier part number", "supplier pn"),
        *("vendor part number", "vendor pn", "order code", "order number"),
    ),
    "seller": ("seller", "distributor", "supplier", "vendor"),
    "quantity": (
        *("order quantity", "order qty", "total quantity", "total qty", "quantity", "qty", "qnty", "quant"),
        *("quantity per board", "qty per board", "quantity required", "qty required", "count"),
    ),
}

_SPECIFIC = {
    "mpn": (
        *("manufacturers part number", "manufacturer no", "manufacturer number", "manf part number", "manf part no"),
        *("manf no", "mfg no", "mfn"),
        *("Herstellerteilenummer", "Herstellerteilenr", "Herstellerartikelnummer", "Herstellerartikelnr"),
        *("Herstellernummer", "Herstellernr", "Herstellerbezeichnung", "Herstellertyp", "Teilenummer Hersteller"),
        *("Artikelnummer Hersteller", "Artikelnr Hersteller"),
        *("référence fabricant", "référence du fabricant", "réf fabricant", "référence constructeur"),
        *("réf constructeur", "code fabricant", "numéro de pièce fabricant", "numéro de pièce du fabricant"),
        *("número de pieza del fabricante", "número de pieza de fabricante", "número de parte del fabricante"),
        *("referencia fabricante", "referencia del fabricante", "código fabricante", "código del fabricante"),
        *("codice produttore", "codice del produttore", "codice costruttore", "codice del costruttore"),
        *("codice articolo produttore", "part number produttore", "numero parte produttore"),
        *("número da peça do fabricante", "número de peça do fabricante", "código do fabricante"),
        *("referência do fabricante", "part number do fabricante"),
        *("fabrikantnummer", "fabrikantcode", "onderdeelnummer fabrikant", "fabrikant onderdeelnummer"),
        *("onderdeelnummer van fabrikant", "artikelnummer fabrikant", "fabrikant artikelnummer"),
        *("numer producenta", "nr producenta", "numer katalogowy producenta", "numer części producenta"),
        *("kod producenta", "symbol producenta", "oznaczenie producenta"),
        *("tillverkarens artikelnummer", "artikelnummer tillverkare", "číslo dílu výrobce", "označení výrobce"),
        *("артикул производителя", "номер производителя", "партномер"),
        *("制造商零件编号", "制造商零件号", "制造商料号", "制造商型号", "制造商部件号", "制造商编号", "厂商料号"),
        *("厂商型号", "厂家料号", "厂家型号", "原厂料号", "原厂型号", "製造商零件編號", "製造商料號", "製造商型號"),
        *("原廠料號", "原廠型號", "廠商料號"),
        *("メーカー型番", "メーカ型番", "メーカー品番", "メーカ品番", "メーカー部品番号", "製造元品番", "製造元型番"),
        *("제조사 부품번호", "제조사 품번", "제조업체 부품번호"),
    ),
    "brand": (
        *("manf", "manf name", "make", "producer"),
        *("Hersteller", "Herstellername", "Name Hersteller", "Fabrikat", "Marke"),
        *("fabricant", "nom du fabricant", "constructeur", "marque", "fabricante", "marca"),
        *("produttore", "costruttore", "fabbricante", "fabrikant", "merk", "producent", "tillverkare", "výrobce"),
        *("производитель", "制造商", "厂商", "厂家", "生产厂家", "生产商", "品牌", "製造商", "廠商", "廠牌"),
        *("メーカー", "メーカ", "メーカー名", "メーカ名", "製造元", "製造メーカー", "제조사", "제조업체"),
    ),
    "sku": (
        *("distributor part no", "distributor no", "supplier part no", "supplier no", "vendor part no", "vendor no"),
        *("ordering code", "order no"),
        *("Lieferantenartikelnummer", "Lieferantenartikelnr", "Lieferantenteilenummer", "Lieferantennummer"),
        *("Artikelnummer Lieferant", "Händlerartikelnummer", "Bestellnummer", "Bestellnr", "Bestellcode"),
        *("référence fournisseur", "réf fournisseur", "référence distributeur", "code commande"),
        *("numéro de commande", "referencia proveedor", "referencia del proveedor", "código proveedor"),
        *("código del proveedor", "código de pedido", "número de pedido"),
        *("codice fornitore", "codice del fornitore", "codice distributore", "codice ordine"),
        *("código do fornecedor", "referência do fornecedor", "código de encomenda"),
        *("leveranciersnummer", "artikelnummer leverancier", "bestelnummer", "bestelcode"),
        *("numer dostawcy", "kod dostawcy", "symbol dostawcy", "numer zamówienia", "nr zamówienia"),
        *("artikelnummer leverantör", "objednací číslo", "код поставщика"),
        *("供应商料号", "供应商编号", "供应商型号", "商品编号", "立创商品编号", "订货编号", "订货号", "供應商料號"),
        *("販売店品番", "仕入先品番", "発注コード", "注文コード", "商品コード", "공급업체 품번"),
    ),
    "seller": (
        *("Lieferant", "Händler", "Distributeur", "fournisseur", "proveedor", "distribuidor", "fornitore"),
        *("distributore", "fornecedor", "leverancier", "dostawca", "dystrybutor", "leverantör", "dodavatel"),
        *("поставщик", "供应商", "分销商", "供應商", "販売店", "仕入先", "購入先", "공급업체"),
    ),
    "quantity": (
        *("Bestellmenge", "Gesamtmenge", "Menge", "Anzahl", "Stückzahl", "Stück", "Stk", "quantité", "qté"),
        *("cantidad", "cant", "uds", "quantità", "qtà", "quantidade", "qtd", "qtde", "aantal", "hoeveelheid", "stuks"),
        *("ilość", "liczba sztuk", "szt", "antal", "množství", "počet", "počet kusů", "количество", "кол-во"),
        *("数量", "用量", "總數量", "數量", "個数", "員数", "수량"),
    ),
}
_GENERAL = {
    "mpn": (
        *("partnumber", "Teilenummer", "Teilenr", "Teile Nr", "Artikelnummer", "Artikelnr", "Typenbezeichnung"),
        *("numéro de pièce", "référence pièce", "référence article", "número de pieza", "número de parte"),
        *("numero di parte", "codice parte", "número da peça", "número de peça", "onderdeelnummer", "typenummer"),
        *("numer części", "nr części", "numer katalogowy", "artikelnummer", "číslo dílu", "парт-номер"),
        *("零件编号", "零件号", "器件型号", "规格型号", "型号", "料号", "零件編號", "型號", "料號"),
        *("部品番号", "部品型番", "型番", "品番", "型式", "型名", "부품번호", "품번"),
    )
}

Names = Mapping[str, str]  # column name by v3's key
NONE: Names = {}


def plain(name: str) -> str:
    """Normalize a column name: no case, accents, spaces or punctuation; a name of punctuation alone is unchanged."""
    letters = (each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))
    return "".join(filter(str.isalnum, letters)).lower() or name.strip()


_KNOWN = {
    key: [plain(name) for name in (*COLUMNS[key], *_SPECIFIC.get(key, ()), *_GENERAL.get(key, ()))] for key in COLUMNS
}
# English names of any number come after those of the manufacturer's number in other languages.
_ANY_NUMBER = set(map(plain, ("part number", "part no", "pn", *_GENERAL["mpn"])))
_KNOWN["mpn"].sort(key=_ANY_NUMBER.__contains__)
_ALL_KNOWN = {name for names in _KNOWN.values() for name in names}


def columns(row: Sequence[str], named: Names = NONE) -> dict[str, int]:
    """Return the column index of each of v3's keys and of `quantity`, if this row is the header; empty if it names no
    part number, or lacks a column of `named`.
    """
    entry = known_columns(row, named)
    return entry if any(key in entry for key in NUMBERS) and named.keys() <= entry.keys() else {}


def known_columns(row: Sequence[str], named: Names = NONE) -> dict[str, int]:
    """Return the column index of each key whose name is in this row. A key of `named` has that name only."""
    names, own = list(map(_known_name, row)), list(map(plain, row))
    known_names = {key: _first(known, names) for key, known in _KNOWN.items() if key not in named}
    entry = {key: names.index(name) for key, name in known_names.items() if name is not None}
    return entry | {key: own.index(plain(name)) for key, name in named.items() if plain(name) in own}


def _known_name(cell: str) -> str:
    """Normalize a header cell. `Mfr #` is a number where `Mfr` would be a name."""
    numbered = plain(cell.replace("#", " no").replace("№", " no"))
    return numbered if numbered in _ALL_KNOWN else plain(cell)


def _first(known: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in known if name in names), None)


def decoded(data: bytes) -> str:
    """Decode UTF-16 with a byte order mark, UTF-8, or else cp1252, which Excel writes in Western Europe."""
    return data.decode(encoding(data), "replace")


def encoding(data: bytes) -> str:
    """Detect the encoding; for UTF-8 and UTF-16 with a byte order mark, one that removes it."""
    if data.startswith(UTF16):
        return "utf-16"
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def delimiter(text: str, named: Names = NONE) -> str:
    """Detect the delimiter: the one whose first rows have the most header cells, then the most cells."""
    few = len(text) < SAMPLE_CHARACTERS
    sample = "\n".join(text.splitlines()[:SAMPLE]) if few else text[:SAMPLE_CHARACTERS]
    return max(DELIMITERS, key=lambda each: _fitness(sample, each, named))


def _fitness(sample: str, each: str, named: Names) -> tuple[int, int]:
    try:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=each))[:SAMPLE]
    except csv.Error:
        return 0, 0
    return max((len(columns(row, named)) for row in rows), default=0), max(map(len, rows), default=0)
