"""Tables that transforms read, as a program needs them: v3's uids and names, and v3's spec keys.

All rows of a kind are written, because the sellers and specs of later responses are not known. Of spec keys only
those that the rule does not make of the attribute's name (`Case/Package` is case_package).
"""

from typing import Any

from proxy.mapping.specs import SpecNames
from proxy.mapping.tables import Tables
from proxy.mapping.uids import Uids, source_uids

NOTES = {
    "SELLER_UIDS": "v3's uids of sellers that are on record, by Nexar's id, or by name where the id is not known.",
    "BRAND_UIDS": "v3's uids of brands that are on record, by Nexar's id, or by name where the id is not known.",
    "MANUFACTURER_UIDS": "v3's uids of manufacturers that are on record, by Nexar's id, or by name.",
    "CATEGORY_UIDS": "v3's uids of categories that are on record, by Nexar's id, or by name.",
    "SOURCE_UIDS": "v3's uids of sources that are on record, by name.",
    "SELLER_NAMES": "v3's names of sellers, by Nexar's id, or by the name that Nexar has.",
    "SOURCE_NAMES": "v3's names of sources, by the name that Nexar has.",
    "SPEC_KEYS": "v3's keys of specs that differ from the attribute's name, by Nexar's shortname.",
    "SPEC_NAMES": "v3's names of specs, by Nexar's shortname.",
    "SPEC_RANGES": "Attributes that v3 had as one spec: its value and both ends.",
    "SPECS_BESIDE": "v3's keys of an attribute, by another one that the part has.",
    "SPECS_OF_KEYS": "The attribute that these keys have of their own.",
    "WHOLE_SPECS": "Attributes whose values are whole numbers.",
    "LISTED_SPECS": 'Attributes with several values, which Nexar joins with ", ".',
    "PERCENT_SPECS": "Tolerances, which v3 wrote as text, such as ±5%.",
}


def table_rows(tables: Tables) -> dict[str, Any]:
    return {
        **{
            f"{kind.upper()}_UIDS": _uids(tables.uids[kind]) for kind in ("Seller", "Brand", "Manufacturer", "Category")
        },
        "SOURCE_UIDS": source_uids(tables.uids),
        "SELLER_NAMES": {k: name for k, name in tables.uids["Seller"].recorded().names.items() if k != name},
        "SOURCE_NAMES": _source_names(tables),
        **_specs(tables.specs),
    }


def _uids(uids: Uids) -> dict[str, str]:
    recorded = uids.recorded()
    # One table for both: no company's name is a number.
    return {**recorded.by_id, **recorded.by_name}


def _source_names(tables: Tables) -> dict[str, str]:
    """Return the names of all sources whose name in v3 differs. Most of them are sellers."""
    source_name = tables.transforms()["source_name"]
    nexar_names = (*tables.uids["Source"].recorded().names, *tables.uids["Seller"].recorded().ids)
    return {name: v3_name for name in nexar_names if (v3_name := source_name(name)) != name}


def _specs(specs: SpecNames) -> dict[str, Any]:
    entries = specs.names
    beside = {shortname: entry.beside for shortname, entry in entries.items() if entry.beside}
    keys = {
        *(entries[shortname].key for shortname in beside),
        *(key for each in beside.values() for key in each.values()),
    }
    ranges = {}
    for shortname, entry in entries.items():
        source = specs.source(entry.key)
        if source and source.is_range:
            ranges[shortname] = {"value": source.value, "low": source.low, "high": source.high}
    return {
        "SPEC_KEYS": {
            name: entry.key for name, entry in entries.items() if entry.beside or _letters(name) != _letters(entry.key)
        },
        "SPEC_NAMES": {name: entry.name for name, entry in entries.items() if entry.name},
        "SPEC_RANGES": ranges,
        "SPECS_BESIDE": beside,
        "SPECS_OF_KEYS": {key: source.value for key in sorted(keys) if (source := specs.source(key))},
        "WHOLE_SPECS": [name for name, entry in entries.items() if entry.whole],
        "LISTED_SPECS": [name for name, entry in entries.items() if entry.many],
        "PERCENT_SPECS": [name for name, entry in entries.items() if entry.plus_minus],
    }


def _letters(name: str) -> str:
    """Return a name without underscores. A shortname has the letters of the attribute's name, but not its blanks."""
    return name.replace("_", "")
