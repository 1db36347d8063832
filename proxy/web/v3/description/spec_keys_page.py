"""docs/reference/spec-keys.md as text: which of v3's spec keys have a source, from the tables of mappings/.

`v3bridge surface --page spec-keys` prints it.
"""

from proxy.mapping import loader
from proxy.mapping.specs import SpecName
from proxy.web.v3.description.markdown import code, table

NOTHING_SIMILAR = "no recorded attribute of the service is similar"
HEAD = """\
# Spec keys

v3 named technical data by keys of its own: `specs.resistance_tolerance`. This page is generated from
`mappings/spec_names.yaml` and `mappings/spec_keys.yaml`. A test fails while it is stale; this renews it:

```sh
.venv/bin/v3bridge surface --page spec-keys > docs/reference/spec-keys.md
```

Responses have the key of the first column. `show[]`, `hide[]`, `slice[]`, filters, facets, statistics and `sortby` take
it and every other key of its row. An attribute of the service that is in neither table gets its name in v3's spelling
as its key (lower case, words joined by `_`), which can be a key that has no source here.

"""
RULES = """\
## Ranges

Where the service has a range as two attributes, v3 had one spec with `min_value` and `max_value`. Its `value` is the
attribute of the value, where there is one, else `[]`.

| use | what a range does |
| --- | --- |
| filter | passes where the range has a number in common with the filter; `[85 TO *]` filters by the upper end only |
| filter on a range with a value | is a 400 that names the keys of single attributes: the service has no OR of filters |
| facet | counts both ends, and the value |
| statistics | go from the lowest to the highest |
| `sortby` | goes by the lower end upwards, by the upper end downwards |
| `specs.<key>.min_value`, `.max_value` | mean that end in filters, facets, statistics and `sortby` |
| key of one end | means that end there too, the range in `show[]` and `hide[]` |

## Tolerances

The service has one tolerance, v3 had one of each quantity. The quantity that a part has beside it decides; a part with
none of them keeps `tolerance`. A filter on `resistance_tolerance` also asks for a resistance of 0 or more, because the
service cannot ask if there is one. Its facets and statistics count the hits with a resistance, in a search of their own
that returns no parts. `tolerance` means all of them. `sortby` orders by every tolerance.

A tolerance is text with its sign, as in v3: value `["±5%"]`, datatype `string`, no unit, and the same in facets. A
filter takes `±5%`, `5%`, `5` and `5.0`. Ranges in filters, statistics and `sortby` go by the number; a `spec_drilldown`
has no statistics of it.

"""


def page(mappings: loader.Mappings) -> str:
    """The whole page."""
    names = mappings.tables.specs.names
    lines = [_line(names, key, similar) for key, similar in mappings.tables.v3_specs.items()]
    sources = sum(bool(line[1]) for line in lines)
    count = f"{sources} of v3's {len(lines)} known keys have a source, {len(lines) - sources} have none.\n\n"
    others = sorted({entry.key for entry in names.values()} - set(mappings.tables.v3_specs))
    more = [_line(names, key, None)[:3] for key in others]
    return (
        f"{HEAD}{RULES}## v3's keys\n\n{count}{table(('v3 key', 'read from', 'other keys', 'why not'), lines)}"
        "## Other keys\n\nThe service has more attributes than v3 is known to have had keys for.\n\n"
        f"{table(('key', 'read from', 'other keys'), more)}"
    ).rstrip("\n") + "\n"


def _line(names: dict[str, SpecName], key: str, similar: str | None) -> tuple[str, str, str, str]:
    own = {shortname: entry for shortname, entry in names.items() if entry.key == key}
    read = [f"`{shortname}`" + (f" ({entry.end})" if entry.end else "") for shortname, entry in own.items()]
    read += [
        f"`{shortname}` of parts with `{quantity}`"
        for shortname, entry in names.items()
        for quantity, beside in entry.beside.items()
        if beside == key
    ]
    others = [spelling for shortname, entry in own.items() for spelling in (*entry.also, shortname)]
    why = "" if read else similar or NOTHING_SIMILAR
    return f"`{key}`", ", ".join(read), code(dict.fromkeys(each for each in others if each != key)), why
