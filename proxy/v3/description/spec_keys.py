"""Tables of v3's spec keys and their upstream attributes, from those of mappings/; words are in spec_keys.md.j2."""

from typing import Any

from proxy.mapping import loader
from proxy.mapping.specs import SpecName
from proxy.v3.description import markdown

NOTHING_SIMILAR = "no recorded attribute of the Nexar API is similar"


def tables(mappings: loader.Mappings) -> dict[str, Any]:
    names = mappings.tables.specs.names
    v3_keys = [_line(names, key, similar) for key, similar in mappings.tables.v3_specs.items()]
    other_keys = sorted({entry.key for entry in names.values()} - set(mappings.tables.v3_specs))
    return {
        "v3_keys": v3_keys,
        "sources": sum(bool(line[1]) for line in v3_keys),
        "other_keys": [_line(names, key, None)[:3] for key in other_keys],
    }


def _line(names: dict[str, SpecName], key: str, similar: str | None) -> tuple[str, str, str, str]:
    entries = {shortname: entry for shortname, entry in names.items() if entry.key == key}
    read = [f"`{shortname}`" + (f" ({entry.end})" if entry.end else "") for shortname, entry in entries.items()]
    read += [
        f"`{shortname}` of parts with `{quantity}`"
        for shortname, entry in names.items()
        for quantity, beside in entry.beside.items()
        if beside == key
    ]
    spellings = [spelling for shortname, entry in entries.items() for spelling in (*entry.also, shortname)]
    why = "" if read else similar or NOTHING_SIMILAR
    others = dict.fromkeys(spelling for spelling in spellings if spelling != key)
    return f"`{key}`", ", ".join(read), markdown.code(others), why
