"""Columns of bills of materials: their names in several languages and programs, the header row, encoding and delimiter
of CSV.

`compare` reads such tables into requests, `sheet` fills them. Names are compared without case, accents, spaces and
punctuation, so that one name stands for many spellings.
"""

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence

HEADER_ROWS = 30  # rows in which the header is searched for, because exports begin with titles
EXAMINED_ROWS = 200  # that a header may explain
DELIMITERS = ",;\t|"
SAMPLE = 30  # rows that are examined to detect the delimiter
SAMPLE_CHARACTERS = 1 << 20
NUMBERS = ("mpn", "sku")  # keys of the columns of which a table needs one
_FIRST = re.compile(r"\D1$")
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# Headings by role: v3's keys, `quantity`, and the two ways to say which lines are not populated. The best come first:
# those of the manufacturer's number before those of any number, because a company's own numbers are called so, too.
HEADINGS = {
    "mpn": (
        *("mpn", "manufacturer part number", "manufacturer part no", "manufacturer part", "manufacturer pn"),
        *("manufacturer product number", "mfr part number", "mfr part no", "mfr part", "mfr pn", "mfr no"),
        *("mfg part number", "mfg part no", "mfg part", "mfg pn", "manufacturers part number", "manufacturer no"),
        *("manufacturer number", "manufacture part number", "manf part number", "manf part no", "manf no", "mfg no"),
        *("manuf part number", "manuf part no", "mfr part number input", "mfn", "mp"),
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
        # Any part number.
        *("part number", "part no", "partno", "pn", "requested part number"),
        *("Teilenummer", "Teilenr", "Teile Nr", "Artikelnummer", "Artikelnr", "Typenbezeichnung"),
        *("numéro de pièce", "référence pièce", "référence article", "número de pieza", "número de parte"),
        *("numero di parte", "codice parte", "número da peça", "número de peça", "onderdeelnummer", "typenummer"),
        *("numer części", "nr części", "numer katalogowy", "číslo dílu", "парт-номер"),
        *("零件编号", "零件号", "器件型号", "规格型号", "型号", "料号", "零件編號", "型號", "料號"),
        *("部品番号", "部品型番", "型番", "品番", "型式", "型名", "부품번호", "품번"),
    ),
    "brand": (
        *("manufacturer", "manufacturer name", "mfr", "mfr name", "mfg", "mfg name", "brand", "maker", "manf"),
        *("manf name", "manuf", "make", "producer", "mf"),
        *("Hersteller", "Herstellername", "Name Hersteller", "Fabrikat", "Marke"),
        *("fabricant", "nom du fabricant", "constructeur", "marque", "fabricante", "marca"),
        *("produttore", "costruttore", "fabbricante", "fabrikant", "merk", "producent", "tillverkare", "výrobce"),
        *("производитель", "制造商", "厂商", "厂家", "生产厂家", "生产商", "品牌", "製造商", "廠商", "廠牌"),
        *("メーカー", "メーカ", "メーカー名", "メーカ名", "製造元", "製造メーカー", "제조사", "제조업체"),
    ),
    "sku": (
        *("sku", "distributor part number", "distributor pn", "supplier part number", "supplier pn"),
        *("vendor part number", "vendor pn", "order code", "order number"),
        *("distributor part no", "distributor part", "distributor no", "supplier part no", "supplier part"),
        *("supplier no", "vendor part no", "vendor part", "vendor no", "ordering code", "order no"),
        *("digikey part number", "digikey part no", "digikey part", "digikey pn", "digikey no", "dk part no"),
        *("mouser part number", "mouser part no", "mouser part", "mouser pn", "mouser no"),
        *("lcsc part number", "lcsc part no", "lcsc part", "lcsc pn", "lcsc no", "lcsc", "lcsc part no optional"),
        *("jlcpcb part number", "jlcpcb part no", "jlcpcb part", "jlc part no", "jlc part"),
        *("farnell order code", "farnell part number", "farnell part no", "farnell", "oc farnell"),
        *("newark part number", "newark part no", "newark", "oc newark", "arrow part number", "arrow part no"),
        *("rs part number", "rs part no", "rs stock no", "tme part number", "tme symbol"),
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
        *("seller", "distributor", "supplier", "vendor"),
        *("Lieferant", "Händler", "Distributeur", "fournisseur", "proveedor", "distribuidor", "fornitore"),
        *("distributore", "fornecedor", "leverancier", "dostawca", "dystrybutor", "leverantör", "dodavatel"),
        *("поставщик", "供应商", "分销商", "供應商", "販売店", "仕入先", "購入先", "공급업체"),
    ),
    "quantity": (
        *("order quantity", "order qty", "total quantity", "total qty", "quantity", "qty", "qnty", "quant"),
        *("quantity per board", "qty per board", "qty board", "quantity board", "qty pcb", "qty per pcb"),
        *("qty per unit", "quantity required", "qty required", "required quantity", "required qty"),
        *("requested quantity", "requested qty", "quantity pcs", "qty pcs", "count", "pcs", "pieces", "units"),
        *("Bestellmenge", "Gesamtmenge", "Menge", "Anzahl", "Anz", "Stückzahl", "Stück", "Stk", "quantité", "qté"),
        *("cantidad", "cant", "uds", "quantità", "qtà", "quantidade", "qtd", "qtde", "aantal", "hoeveelheid", "stuks"),
        *("ilość", "liczba sztuk", "szt", "antal", "množství", "počet", "počet kusů", "количество", "кол-во"),
        *("数量", "用量", "總數量", "數量", "個数", "員数", "수량"),
    ),
    "dnp": (
        *("dnp", "dni", "dnf", "dnm", "do not populate", "do not place", "do not install", "do not fit"),
        *("do not mount", "not fitted", "not populated", "not mounted", "no pop", "nicht bestücken", "nicht bestückt"),
    ),
    "fitted": ("fitted", "populate", "populated", "mounted", "mount", "assemble", "bestücken", "bestückt"),
}

Names = Mapping[str, str]  # column name by v3's key
NONE: Names = {}


def plain(name: str) -> str:
    """Normalize a column name: no case, accents, spaces or punctuation; a name of punctuation alone is unchanged."""
    letters = (each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))
    return "".join(filter(str.isalnum, letters)).lower() or name.strip()


_KNOWN = {role: [plain(name) for name in names] for role, names in HEADINGS.items()}
_ALL_KNOWN = {name for names in _KNOWN.values() for name in names}


def columns(row: Sequence[str], named: Names = NONE) -> dict[str, int]:
    """Return the column index of each of v3's keys and of `quantity`, if this row is the header; empty if it names no
    part number, or lacks a column of `named`."""
    entry = known_columns(row, named)
    return entry if any(key in entry for key in NUMBERS) and named.keys() <= entry.keys() else {}


def known_columns(row: Sequence[str], named: Names = NONE) -> dict[str, int]:
    """Return the column index of each role whose name is in this row. A role of `named` has that name only."""
    own = list(map(plain, row))
    # Of `Supplier 1` and `Supplier 2`, the first is used; `Supplier` comes before both.
    places = {name.removesuffix("1"): index for index, name in reversed(list(enumerate(own))) if _FIRST.search(name)}
    places |= {name: index for index, name in reversed(list(enumerate(map(_known_name, row))))}
    entry = {
        role: places[name]
        for role, names in _KNOWN.items()
        if role not in named and (name := next(filter(places.__contains__, names), None)) is not None
    }
    return entry | {role: own.index(plain(name)) for role, name in named.items() if plain(name) in own}


def _known_name(cell: str) -> str:
    """Normalize a header cell. `Mfr #` is a number where `Mfr` would be a name."""
    numbered = plain(cell.replace("#", " no").replace("№", " no"))
    return numbered if numbered in _ALL_KNOWN else plain(cell)


def possible_headers(rows: Sequence[Sequence[str]], named: Names = NONE) -> dict[int, dict[str, int]]:
    """Return the columns of each row that may be the header, by the row's index."""
    found = {index: columns(row, named) for index, row in enumerate(rows[:HEADER_ROWS])}
    return {index: places for index, places in found.items() if places}


def best_header(rows: Sequence[Sequence[str]], possible: Mapping[int, Mapping[str, int]]) -> tuple[int, int]:
    """Return the index of the row that explains the rows below it best, and how well.

    A title such as `Part Number:` names a column, too, but what is below it is no line of parts. Each row counts by the
    square of the number of its cells that fit. Of equals, the last is nearest to the parts.
    """
    scores: dict[int, int] = {}
    seen = set[tuple[str, ...]]()
    for index, places in possible.items():
        headings = tuple(plain(rows[index][at]) for at in sorted(places.values()))
        if headings not in seen:  # else those of a second block
            below = (row for at, row in enumerate(rows[index + 1 :], index + 1) if at not in possible)
            scores[index] = sum(_fit(row, places) ** 2 for row in below)
        seen.add(headings)
    best = max(scores, key=lambda index: (scores[index], len(possible[index]), index))
    return best, scores[best]


def _fit(row: Sequence[str], places: Mapping[str, int]) -> int:
    """Return how many cells of a row may belong to the columns; 0 without a part number."""
    cells = {role: row[at].strip() for role, at in places.items() if at < len(row)}
    fitting = {role for role, text in cells.items() if any(map(str.isalnum, text)) and not text.endswith(":")}
    if not cells.get("quantity", "")[:1].isdecimal():
        fitting.discard("quantity")
    return len(fitting) if fitting.intersection(NUMBERS) else 0


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
