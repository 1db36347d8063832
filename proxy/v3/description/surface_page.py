"""Page docs/reference/v3-surface.md: every path, parameter, field and error, from the OpenAPI description; from the
mappings, which it leaves out, the source of each field and what searches support.

`v3bridge surface` prints it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from proxy import model
from proxy.mapping import coverage, loader, tables
from proxy.planning import match, mpn_search, search_filters
from proxy.v3 import bounds, unsupported
from proxy.v3.description import field_names, openapi
from proxy.v3.description.markdown import anchor, code, joined, kind, table
from proxy.v3.description.response_schemas import Schema, ref
from proxy.v3.endpoints import PREFIXES
from proxy.v3.parameters import FALSE, TRUE
from proxy.v3.parsing.v3_parameters import FIELD

HEAD = """\
# The v3 surface

Every path, parameter and field of v3, and its source in the Nexar API. This page is generated from the OpenAPI
description and `mappings/`. A test fails while it is stale; this renews it:

```sh
v3bridge surface > docs/reference/v3-surface.md
python -m docs.citations docs/reference/v3-surface.md
```

The OpenAPI 3.1 description is available at `/v3/openapi.json`, without an API key.

"""
COVERAGE = """\
| coverage | value |
| --- | --- |
| exact | the Nexar API's, in v3's form |
| derived | computed from the Nexar API's, as described |
| constant | always the same, for the reason given |
| no source | empty: the Nexar API has none, for the reason given |

Fields with `include[]` are present only on request. Where a field needs a feature that the application's plan lacks,
a client sees the field's empty value. "Read from" is the path in the GraphQL schema: `^` is the enclosing object,
`$requested_uid` the requested uid, and `String` a plain value that the object is made from.

"""
SEARCHES = f"""\
Parts are searched by the Nexar API. A filter that it cannot apply is a 400 that lists the possible ones, because the
result would be wrong without it. So is a field that v3 never had. A facet, a statistic or a sort key that v3 had and
the Nexar API has not is empty or ignored, and named in `{unsupported.HEADER}` (see below); so are those of specs
where the application's plan lacks the feature TECH_SPECS. The Nexar API sorts by one field: the first supported one;
`score desc` may follow.

Names in filters are exact, character by character, as in facets; `*` matches any text, in at most
{bounds.PATTERNS.maximum} names of a request. A filter that cannot match, such as one by an unknown name or uid, is
answered without an upstream request, and named, too. `<key>` is a v3 [spec key](spec-keys.md), such as `resistance`.

A filter by `mpn` is a supMultiMatch of up to {mpn_search.MPNS_MAX} numbers, whose results are compared character by
character and filtered further. Each number gets {match.CANDIDATES} candidates, or `start` + `limit` if that is more,
and all together at most {model.PARTS_MAX}. All results are billed, those of another punctuation, too. Where there are
more, and with `limit=0`, `hits` is an upper bound. There are no counts, the table has the possible sort keys, and `q`
is empty or the number itself.

"""
UNSUPPORTED = f"""\
Parameters that a response cannot honor are named in the header `{unsupported.HEADER}`, also of cached responses, and
in the log (`parameters ignored`). It is a comma-separated list of parameters, each without its last `[]`:

| item | effect |
| --- | --- |
| `facet[fields][<field>]` | the Nexar API cannot count it: no values |
| `facet[queries]=<query>` | the Nexar API cannot filter by it: its count is null |
| `stats[<field>]` | the Nexar API has no numbers of it: all null |
| `spec_drilldown` | the plan has no technical data, or the search is by part number: no suggestions |
| `sortby=<field>` | the Nexar API cannot sort by it, or sorts by another already: ignored |
| `filter[fields][<field>]=<value>` | no object has this uid or name: no hits |
| `filter[queries]=<field>:<value>` | the same |
| `filter[<other>]` | no form of a filter that v3 had, such as `filter[value]=…`: ignored |
| `queries[<number>].<key>` | no key of a query in `/parts/match`: ignored; a query with no other key has an `error` |

All characters but letters, digits and `-._~[]=` are percent-encoded as UTF-8. A name is cut at {unsupported.NAME_MAX}
characters, the list at {unsupported.LENGTH_MAX}; `+3` at its end stands for three more.

With `X-Strict: 1`, or an API key whose setting `strict` is true, such a request is a 400 instead, which names each of
these parameters and costs no parts. So is a request that names, in `include[]`, `show[]` or `slice[]`, a field that v3
never had, one without a source, or one of a feature that the plan lacks; other fields of the response do not count.

"""
PATHS = """\
A path that v3 does not have is a 404 that names the most similar one: `/v3/part/match`, `/parts/match` and
`/api/v4/parts/match` lead to `/parts/match`, `/v3/manufacturers/search` to `/brands/search`. There are no redirects.
https:// on this port, and CONNECT, are refused with a message.

"""
COMPACT = """\
JSON is compact, with unordered keys. Two bodies recorded in 2018 and 2019 without `pretty_print` are indented by two
and sorted; JSON parsers see no difference. Written that way, three recorded bodies of 16 to 19 kB would grow by 48 to
112 % (13 to 27 % as gzip) and take 0.5 to 0.7 ms to write instead of 0.01 ms. `pretty_print` writes as v3 did.

"""
LISTS = """\
Brands, categories and sellers are searched in the proxy, by every field they have. Names match word by word, each
word from its beginning, aliases included. `*` matches any text, in `q` and in filters. They have no specs:
`spec_drilldown` adds nothing.

"""
BOUNDS = f"""\
A request beyond a bound is a 400 that names the parameter, the bound and the number sent. The bounds limit the cost
of one request, so that it does not delay others. The request line has at most {bounds.REQUEST_LINE} bytes, and
{bounds.PATH} before the query.

"""
REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')
JSON = {"type": "JSON"}  # shown type of a parameter with JSON content
COLUMNS = ("parameter", "value", "default", "meaning", "contract")

Section = tuple[str, str]
Operations = dict[str, Any]
"""Operations of the description by path."""


class ParameterRow(NamedTuple):
    """A parameter, or a key of a query, in a table."""

    name: str
    value: str
    default: str
    meaning: str
    contract: str


def page(mappings: loader.Mappings) -> str:
    """Return the whole page."""
    document = openapi.document(mappings)
    components = document["components"]
    schemas: dict[str, Schema] = components["schemas"]
    operations = {path: item["get"] for path, item in document["paths"].items()}
    names = _order(schemas, ["Part", *mappings.rules])
    around = [name for name in _order(schemas, schemas) if name not in names]
    shared = _shared(operations.values())
    sections: list[Section] = [
        ("Endpoints", _endpoints(operations)),
        ("Parameters of every endpoint", _globals(components["securitySchemes"]["apikey"], shared, operations)),
        *_actions(operations, shared),
        ("Bounds of a request", BOUNDS + _bounds()),
        ("Fields in searches of parts", SEARCHES + _parts(mappings)),
        ("Unsupported parameters", UNSUPPORTED),
        ("Fields in other searches", LISTS + _lists(operations)),
        ("Objects", COVERAGE + _counted(mappings)),
        *((name, _object(mappings, schemas, name)) for name in names),
        (
            "Responses",
            "The parts of a response around the objects. `show[]` and `hide[]` do not affect them.\n\n" + COMPACT,
        ),
        *((name, _envelope(name, schemas[name])) for name in around),
        ("Errors", _errors(components["responses"]) + PATHS),
    ]
    # Third-level headings, which the table of contents leaves out.
    below = {*names, *around}
    contents = "".join(f"- {anchor(title)}\n" for title, _ in sections if title not in below)
    bodies = "".join(f"{'###' if title in below else '##'} {title}\n\n{body}" for title, body in sections)
    return f"{HEAD}{contents}\n{bodies}".rstrip("\n") + "\n"


def _order(schemas: dict[str, Schema], first: Iterable[str]) -> list[str]:
    """Return schemas in reading order: each is followed by those that it refers to."""
    ordered: list[str] = []
    waiting = list(first)
    while waiting:
        name = waiting.pop(0)
        if name not in ordered:
            ordered.append(name)
            waiting[:0] = REFERENCE.findall(json.dumps(schemas[name]))
    return ordered


def _endpoints(operations: Operations) -> str:
    text = f"All are GET under {joined(code(PREFIXES))}; a trailing slash is optional. HEAD and OPTIONS work, too."
    rows = [
        (code([path]), _response(operation), operation["description"].removeprefix("Parts billed: ").removesuffix("."))
        for path, operation in operations.items()
    ]
    return f"{text}\n\n" + table(("path", "response", "parts billed"), rows)


def _response(operation: dict[str, Any]) -> str:
    responses = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return kind(responses["anyOf"][0]) + (", deprecated" if operation.get("deprecated") else "")


def _bounds() -> str:
    rows = [(code(bound.parameters), f"{bound.maximum} {bound.unit}", bound.reason) for bound in bounds.ALL]
    return table(("parameters", "maximum", "reason"), rows)


def _shared(operations: Iterable[dict[str, Any]]) -> list[ParameterRow]:
    """Return the parameters that all operations have."""
    first, *others = (list(_rows(operation)) for operation in operations)
    return [row for row in first if all(row in rows for rows in others)]


def _globals(key: dict[str, Any], shared: list[ParameterRow], operations: Operations) -> str:
    yes, no = (code(sorted(words - {""})) for words in (TRUE, FALSE))
    forms = (
        f"The boolean true is {yes}, in any case of letters, or a name without a value; false is {no}. A list is sent "
        "as `name[]=a&name[]=b`, `name[0]=a` or `name=a`. Unknown parameters are ignored.\n\n"
    )
    apikey = _row(key["name"], {**key, "type": "string"}, required=True)
    included = {operation["tags"][0]: _parameters(operation)["include[]"] for operation in operations.values()}
    names = {
        name: parameter["schema"]["items"].get("anyOf", [{"enum": []}])[0]["enum"]
        for name, parameter in included.items()
    }
    rows = [(kind(ref(name)), code(fields)) for name, fields in names.items() if fields]
    return forms + table(COLUMNS, [apikey, *shared]) + "Fields of `include[]`:\n\n" + table(("object", "fields"), rows)


def _parameters(operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters of an operation by name, without those in headers."""
    return {parameter["name"]: parameter for parameter in operation["parameters"] if "name" in parameter}


def _actions(operations: Operations, shared: list[ParameterRow]) -> Iterator[Section]:
    """Yield a section for each group of endpoints that do the same with different objects."""
    groups: dict[str, Operations] = {}
    for path, operation in operations.items():
        groups.setdefault(operation["summary"].partition(":")[0], {})[path] = operation
    for title, group in groups.items():
        paths: dict[ParameterRow, list[str]] = {}
        for path, operation in group.items():
            for row in _rows(operation):
                if row not in shared:
                    paths.setdefault(row, []).append(path)
        rows = [
            row if len(having) == len(group) else row._replace(meaning=f"{row.meaning}; only {code(having)}")
            for row, having in paths.items()
        ]
        yield title, f"{code(group)}\n\n{table(COLUMNS, rows)}" + "".join(map(_queries, group.values()))


def _queries(operation: dict[str, Any]) -> str:
    """Return the table of the keys of a query, for an operation that has queries."""
    queries = _parameters(operation).get("queries")
    if queries is None:
        return ""
    keys = queries["content"]["application/json"]["schema"]["items"]["properties"]
    text = "A query is an object. An error of one query is its `error`; the others are executed.\n\n"
    return text + table(("key", *COLUMNS[1:]), [_row(name, schema) for name, schema in keys.items()])


def _rows(operation: dict[str, Any]) -> Iterator[ParameterRow]:
    for name, parameter in _parameters(operation).items():
        if parameter.get("style") == "deepObject":
            yield from _by_field(name, parameter["schema"])
        else:
            yield _row(name, {**parameter.get("schema", JSON), **parameter}, required=parameter["required"])


def _by_field(name: str, schema: Schema) -> Iterator[ParameterRow]:
    """Yield the parameters of a field, which are the same for each field; none where no field can be named."""
    values = [*schema["properties"].values(), *schema.get("patternProperties", {}).values()]
    value = values[0] if values else schema["additionalProperties"]
    if value:
        for option, described in value.get("properties", {"": value}).items():
            end = f"[{option}]" if option else "[]" * (described["type"] == "array")
            yield _row(f"{name}[{FIELD}]{end}", described)


def _row(name: str, schema: Schema, *, required: bool = False) -> ParameterRow:
    value = schema.get("anyOf", [schema])[0]  # the other choice of a key of a query is null
    default = "required" if required else code([json.dumps(value["default"])]) if "default" in value else ""
    if "maximum" in value:
        shown = f"0 to {value['maximum']}"
    else:
        shown = "list of string" if value.get("type") == "array" else kind(value)
    return ParameterRow(code([name]), shown, default, schema["description"], schema[openapi.CONTRACT])


def _parts(mappings: loader.Mappings) -> str:
    entries = {
        **mappings.tables.search,
        field_names.SPECS: search_filters.field_support(mappings.tables, field_names.A_SPEC),
    }
    rows = [
        (code([name]), _filter(name, entry), _yes(entry.facet), _yes(name == field_names.SPECS), _sort(entry))
        for name, entry in entries.items()
        if entry is not None
    ]
    return table(("field", "filter", "facet", "stats", "sortby"), rows)


def _filter(name: str, entry: tables.SearchField) -> str:
    if entry.stock:
        return "`[1 TO *]`: in stock"
    if entry.number:
        return "numbers"
    if entry.filter is None:
        return f"no: {entry.instead}" if entry.instead else "no"
    if entry.name:
        return "names"
    return "uids" if entry.uid else "values, `[1 TO 5]`" if name == field_names.SPECS else "values"


def _sort(entry: tables.SearchField) -> str:
    return "yes, beside `mpn` too" if entry.sort and entry.path else _yes(entry.sort)


def _yes(supported: object) -> str:
    return "yes" if supported else "no"


def _lists(operations: Operations) -> str:
    searches = {
        operation["tags"][0]: _parameters(operation) for path, operation in operations.items() if "/search" in path
    }
    del searches["Part"]
    rows = [
        (kind(ref(name)), *(code(search[use]["schema"]["properties"]) or "none" for use in ("filter[fields]", "stats")))
        for name, search in searches.items()
    ]
    return table(("object", "filter, facet, sortby", "stats"), rows)


def _counted(mappings: loader.Mappings) -> str:
    count = Counter(row.kind for row in coverage.of_mappings(mappings))
    numbers = ", ".join(f"{number} {word}" for word, number in count.most_common())
    return f"{count.total()} fields: {joined(numbers)}.\n\n"


def _object(mappings: loader.Mappings, schemas: dict[str, Schema], name: str) -> str:
    rows = [row for row in coverage.of_mappings(mappings) if row.object == name]
    properties = schemas[name]["properties"]
    lines = [(_field(row), kind(properties[row.field]), row.kind, _read(row), _why(mappings, row)) for row in rows]
    return f"{_class_note(name, schemas[name])}Source: {rows[0].source}.\n\n" + table(
        ("field", "type", "coverage", "read from", "how, or why"), lines
    )


def _class_note(name: str, schema: Schema) -> str:
    class_name = schema["properties"].get("__class__", {}).get("const")
    if class_name is None:
        return "It has no `__class__`. "
    return "" if class_name == name else f"Its `__class__` is `{class_name}`. "


def _field(row: coverage.FieldCoverage) -> str:
    marks = ["`include[]`"] * row.include + [f"feature {row.feature}"] * bool(row.feature)
    return code([row.field]) + (f" ({', '.join(marks)})" if marks else "")


def _read(row: coverage.FieldCoverage) -> str:
    return code([row.upstream]) if row.upstream else ""


def _why(mappings: loader.Mappings, row: coverage.FieldCoverage) -> str:
    """Return the note on a field; for a constant only its reason, because its value is shown as its type."""
    return (mappings.rules[row.object].rule(row.field).why or "") if row.kind == "constant" else row.note


def _envelope(name: str, schema: Schema) -> str:
    note = f"{schema.get('description', '')} {_class_note(name, schema)}".strip()
    rows = [
        (code([field]), kind(value), value.get("description", ""))
        for field, value in schema["properties"].items()
        if field != "__class__"
    ]
    return (f"{note}\n\n" if note else "") + table(("field", "type", "what is in it"), rows)


def _errors(responses: dict[str, Any]) -> str:
    rows = [
        (name.removeprefix("Error"), kind(response["content"]["application/json"]["schema"]), response["description"])
        for name, response in responses.items()
    ]
    return table(("status", "body", "when"), rows)
