"""A catalog of a dozen parts, written as the files that the sandbox loads."""

import json
from pathlib import Path

import nexar_sandbox

MAKERS = {
    "370": ("Texas Instruments", ["TI", "Burr Brown"]),
    "278": ("onsemi", ["ON Semiconductor"]),
    "1659": ("Panjit", []),
    "510": ("Lite-On", []),
    "30": ("Vishay", []),
    "3518": ("Memory Protection Devices", ["MPD"]),
    "212": ("KEMET", []),
}
SELLERS: dict[str, dict[str, object]] = {
    "459": {"name": "Digi-Key", "regions": ["US", "GB", "DE"], "weight": 0.9},
    "2401": {"name": "Mouser", "weight": 0.8},
    "2402": {"name": "Newark", "regions": ["US"], "weight": 0.7, "orderMultiple": True},
    "819": {"name": "Farnell", "currency": "GBP", "weight": 0.7, "orderMultiple": True},
    "3261": {"name": "RS", "currency": "GBP", "orderMultiple": True},
    "2454": {"name": "Future Electronics", "orderMultiple": True},
    "11779": {"name": "LCSC", "currency": "CNY"},
    "8706": {"name": "Win Source Electronics", "authorized": False},
    "15001": {"name": "Brown Bag Brokers", "isBroker": True, "authorized": False, "weight": 0.4},
}
CATEGORIES = [
    ("4161", "4161", "Electronic Parts"),
    ("4162", "4161", "Passive Components"),
    ("4163", "4162", "Resistors"),
    ("4167", "4162", "Capacitors"),
    ("4178", "4161", "Integrated Circuits (ICs)"),
    ("4184", "4178", "Logic"),
]
ATTRIBUTES = [
    ("440", "Resistance", "resistance", "number", "ohms", "Ω"),
    ("548", "Capacitance", "capacitance", "number", "farads", "F"),
    ("342", "Tolerance", "tolerance", "number", "percent", "%"),
    ("457", "Voltage Rating", "voltagerating", "number", "volts", "V"),
    ("849", "Max Operating Temperature", "maxoperatingtemperature", "number", "degrees Celsius", "°C"),
    ("842", "Case/Package", "case_package", "text", "", ""),
    ("743", "Color", "color", "text", "", ""),
    ("910", "Lifecycle Status", "lifecyclestatus", "text", "", ""),
]


def _part(number: int, mpn: str, maker: str, category: str = "4184", **more: object) -> dict[str, object]:
    uid = more.pop("v3uid", f"{number:016x}")
    start = {"id": str(number), "mpn": mpn, "manufacturer": maker, "category": category, "v3uid": uid}
    return {**start, "description": more.pop("description", "A part"), **more}


PARTS = [
    _part(101, "SN74S74N", "370", sku={"2402": "67K1122"}, description="Dual D-type flip-flop",
          specs={"lifecyclestatus": "Production"}, cad=True, documents=["Rohs Statement"]),
    _part(102, "SN74S74N", "278", v3uid="bd4d768f82c5628a", redirected=["103cdb613d20cffb"], cad=False),
    _part(103, "SN74S74NE4", "370"),
    _part(104, "CD-4013.B", "370", aka=["HCF4013BE"], datasheet=False),
    _part(105, "CD4013B", "1659"),
    _part(106, "ERJ10K", "30", "4163", specs={"resistance": 10000, "case_package": "0603", "tolerance": 1}),
    _part(107, "ERJ4K7", "30", "4163", specs={"resistance": 4700, "case_package": "0805"}),
    _part(108, "C104", "212", "4167", specs={"capacitance": 1e-7, "voltagerating": 16}, description="Cap"),
    _part(109, "C105", "212", "4167", specs={"capacitance": 1e-6, "voltagerating": 25}, description="Cap"),
    _part(110, "LED-RGB", "510", "4161", specs={"color": "Blue, Green, Red"}, offers="nostock"),
    _part(111, "HOLDER-1", "3518", "4161", offers="brokers"),
    _part(112, "GONE", "3518", "4161", offers="none"),
    _part(113, "ODDSTOCK", "3518", "4161", codes={"459": -2, "819": -4}),
]  # fmt: skip


def write(folder: Path, parts: list[dict[str, object]] = PARTS) -> Path:
    """Write the four files into `folder` and return it."""
    _lines(folder / "companies.jsonl", [*map(_maker, MAKERS), *map(_seller, SELLERS)])
    _lines(folder / "categories.jsonl", [_category(*category) for category in CATEGORIES])
    _lines(folder / "attributes.jsonl", [_attribute(*attribute) for attribute in ATTRIBUTES])
    _lines(folder / "parts.jsonl", parts)
    return folder


def opened(folder: Path, **options: object) -> nexar_sandbox.Catalog:
    return nexar_sandbox.open_catalog(data=write(folder), **options)  # type: ignore[arg-type]


def _maker(id_: str) -> dict[str, object]:
    name, aliases = MAKERS[id_]
    return {
        "id": id_,
        "name": name,
        "aliases": aliases,
        "slug": f"/manufacturers/{id_}",
        "roles": ["manufacturer"],
        "homepageUrl": "http://maker.example",
    }


def _seller(id_: str) -> dict[str, object]:
    return {
        "id": id_,
        "slug": f"/distributors/{id_}",
        "roles": ["seller"],
        "displayFlag": "US",
        **SELLERS[id_],
    }


def _category(id_: str, parent: str, name: str) -> dict[str, object]:
    return {"id": id_, "parentId": parent, "name": name, "path": f"/{name.lower().replace(' ', '-')}"}


def _attribute(id_: str, name: str, short: str, kind: str, units: str, symbol: str) -> dict[str, object]:
    start = {"id": id_, "name": name, "shortname": short, "group": "Technical", "valueType": kind}
    return {**start, "unitsName": units, "unitsSymbol": symbol}


def _lines(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
