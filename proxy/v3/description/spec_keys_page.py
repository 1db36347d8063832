"""Page docs/reference/spec-keys.md: v3's spec keys and their upstream attributes, from the tables of mappings/.

`v3bridge surface --page spec-keys` prints it.
"""

from proxy.mapping import loader
from proxy.mapping.specs import SpecName
from proxy.v3.description.markdown import code, table

NOTHING_SIMILAR = "no recorded attribute of the Nexar API is similar"
HEAD = """\
# Spec keys

v3 named technical attributes by keys of its own: `specs.resistance_tolerance`. This page is generated from
`mappings/spec_names.yaml` and `mappings/spec_keys.yaml`. A test fails while it is stale; this renews it:

```sh
v3bridge surface --page spec-keys > docs/reference/spec-keys.md
```

Responses have the key of the first column. `show[]`, `hide[]`, `slice[]`, filters, facets, statistics and `sortby`
accept it and every other key of its row. An attribute of the Nexar API that is in neither table has its name in v3's
spelling as its key (lower case, words joined by `_`), which can be a key that has no source here.

"""
RULES = """\
## Ranges

Where the Nexar API has a range as two attributes, v3 had one spec with `min_value` and `max_value`. Its `value` is the
attribute of the value, where there is one, otherwise `[]`.

| use | behavior of a range |
| --- | --- |
| filter | matches if the range and the filter overlap; `[85 TO *]` filters by the upper end only |
| filter on a range with a value | a 400 that names the keys of single attributes: the Nexar API has no OR of filters |
| facet | counts both ends, and the value |
| statistics | from the lowest to the highest value |
| `sortby` | by the lower end ascending, by the upper end descending |
| `specs.<key>.min_value`, `.max_value` | select that end in filters, facets, statistics and `sortby` |
| key of one end | selects that end there too, the range in `show[]` and `hide[]` |

## Tolerances

The Nexar API has one tolerance, v3 had one of each quantity. The key depends on the quantity that the part also has; a
part with none of them has `tolerance`. A filter on `resistance_tolerance` also requires a resistance of 0 or more,
because the Nexar API cannot filter by existence. Its facets and statistics count the hits with a resistance, in a
separate search that returns no parts. `tolerance` selects all of them. `sortby` orders by every tolerance.

A tolerance is text with its sign, as in v3: value `["±5%"]`, datatype `string`, no unit, and the same in facets. A
filter accepts `±5%`, `5%`, `5` and `5.0`. Ranges in filters, statistics and `sortby` use the number; `spec_drilldown`
has no statistics of it.

"""


def page(mappings: loader.Mappings) -> str:
    """Return the whole page."""
    names = mappings.tables.specs.names
    lines = [_line(names, key, similar) for key, similar in mappings.tables.v3_specs.items()]
    sources = sum(bool(line[1]) for line in lines)
    count = f"{sources} of v3's {len(lines)} known keys have a source, {len(lines) - sources} have none.\n\n"
    other_keys = sorted({entry.key for entry in names.values()} - set(mappings.tables.v3_specs))
    other_lines = [_line(names, key, None)[:3] for key in other_keys]
    return (
        f"{HEAD}{RULES}## v3's keys\n\n{count}{table(('v3 key', 'read from', 'other keys', 'reason for none'), lines)}"
        "## Other keys\n\nAttributes of the Nexar API for which no v3 key is known.\n\n"
        f"{table(('key', 'read from', 'other keys'), other_lines)}"
    ).rstrip("\n") + "\n"


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
    return f"`{key}`", ", ".join(read), code(dict.fromkeys(spelling for spelling in spellings if spelling != key)), why
