"""Tables of v3's spec keys and their upstream attributes, from those of mappings/; words are in spec_keys.md.j2."""

from typing import Any

from proxy.mapping import loader
from proxy.mapping.specs import SpecName
from proxy.v3.description import markdown


def tables(mappings: loader.Mappings) -> dict[str, Any]:
    names = mappings.tables.specs.names
    known = mappings.tables.v3_specs
    sources = {key: _sources(names, key) for key in [*known, *sorted({entry.key for entry in names.values()})]}
    same = {key for key, (read, also) in sources.items() if not also and read == f"`{key.replace('_', '')}`"}
    return {
        "v3_keys": len(known),
        "v3_same": [key for key in known if key in same],
        "v3_other": [(f"`{key}`", *sources[key]) for key in known if sources[key][0] and key not in same],
        "reasons": [(f"`{key}`", reason) for key, reason in known.items() if reason],
        "unsourced": [key for key, reason in known.items() if not reason and not sources[key][0]],
        "new_same": [key for key in sources if key in same and key not in known],
        "new_other": [(f"`{key}`", *sources[key]) for key in sources if key not in same and key not in known],
    }


def _sources(names: dict[str, SpecName], key: str) -> tuple[str, str]:
    """Return the attributes that a key is read from, and other keys for it that are not their names."""
    entries = {shortname: entry for shortname, entry in names.items() if entry.key == key}
    read = [f"`{shortname}`" + (f" ({entry.end})" if entry.end else "") for shortname, entry in entries.items()]
    read += [
        f"`{shortname}` of parts with `{quantity}`"
        for shortname, entry in names.items()
        for quantity, beside in entry.beside.items()
        if beside == key
    ]
    others = dict.fromkeys(spelling for entry in entries.values() for spelling in entry.also if spelling != key)
    return ", ".join(read), markdown.code(others)
