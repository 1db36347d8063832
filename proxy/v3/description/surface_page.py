"""Page docs/reference/v3-surface.md: every path, parameter, field and error, from the same data as the OpenAPI
description.

`v3bridge surface` prints it. Facts about v3 are not written here: they come from the tables and the mappings.
"""

from collections import Counter, defaultdict

from proxy.mapping import coverage, loader, tables
from proxy.planning import match, mpn_search, search_filters
from proxy.v3 import bounds, unsupported
from proxy.v3.description import field_names, object_schemas, response_schemas
from proxy.v3.description.markdown import anchor, code, default, joined, kind, table, value
from proxy.v3.endpoints import ENDPOINTS, PREFIXES, Action, Endpoint
from proxy.v3.parameters import FALSE, TRUE
from proxy.v3.parsing import v3_parameters
from proxy.v3.parsing.v3_parameters import Parameter

HEAD = """\
# The v3 surface

Every path, parameter and field of v3, and its source in the Nexar API. This page is generated from `mappings/` and
the route table. A test fails while it is stale; this renews it:

```sh
v3bridge surface > docs/reference/v3-surface.md
python -m docs.citations docs/reference/v3-surface.md
```

The same is available as OpenAPI 3.1 at `/v3/openapi.json`, without an API key.

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
and all together at most {match.PARTS_MAX}. All results are billed, those of another punctuation, too. Where there are
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
ACTIONS: dict[Action, str] = {
    "match": "Match",
    "search": "Search",
    "get_multi": "Several objects by uid",
    "get": "One object by uid",
}
PLURALS = {"Part": "parts", "Brand": "brands", "Category": "categories", "Seller": "sellers"}

Section = tuple[str, str]


def page(mappings: loader.Mappings) -> str:
    """Return the whole page."""
    names = _order(mappings)
    sections: list[Section] = [
        ("Endpoints", _endpoints()),
        ("Parameters of every endpoint", _globals(mappings)),
        *_actions(),
        ("Bounds of a request", BOUNDS + _bounds()),
        ("Fields in searches of parts", SEARCHES + _parts(mappings)),
        ("Unsupported parameters", UNSUPPORTED),
        ("Fields in other searches", LISTS + _lists(mappings)),
        ("Objects", COVERAGE + _counted(mappings)),
        *((name, _object(mappings, name)) for name in names),
        (
            "Responses",
            "The parts of a response around the objects. `show[]` and `hide[]` do not affect them.\n\n" + COMPACT,
        ),
        *((each.name, _envelope(each)) for each in response_schemas.ALL),
        ("Errors", _errors() + PATHS),
    ]
    # Third-level headings, which the table of contents leaves out.
    below = {*names, *(each.name for each in response_schemas.ALL)}
    contents = "".join(f"- {anchor(title)}\n" for title, _ in sections if title not in below)
    bodies = "".join(f"{'###' if title in below else '##'} {title}\n\n{body}" for title, body in sections)
    return f"{HEAD}{contents}\n{bodies}".rstrip("\n") + "\n"


def _endpoints() -> str:
    text = f"All are GET under {joined(code(PREFIXES))}; a trailing slash is optional. HEAD and OPTIONS work, too."
    rows = [(code([each.path]), _answer(each), each.cost) for each in ENDPOINTS]
    return f"{text}\n\n" + table(("path", "response", "parts billed"), rows)


def _answer(endpoint: Endpoint) -> str:
    object_kind = kind(response_schemas.ref(endpoint.object))
    alias = f", as {code([endpoint.alias_of])}" if endpoint.alias_of else ""
    return {
        "match": kind(response_schemas.answer(endpoint)),
        "search": f"{kind(response_schemas.ref('SearchResponse'))} of {object_kind}",
        "get_multi": f"{object_kind} by uid, without `__class__`",
        "get": object_kind + alias,
    }[endpoint.action]


def _bounds() -> str:
    rows = [(code(each.parameters), f"{each.maximum} {each.unit}", each.reason) for each in bounds.ALL]
    return table(("parameters", "maximum", "reason"), rows)


def _globals(mappings: loader.Mappings) -> str:
    yes, no = (code(sorted(words - {""})) for words in (TRUE, FALSE))
    forms = (
        f"True is {yes}, in any case of letters, or a name without a value; false is {no}. Several texts are sent as "
        "`name[]=a&name[]=b`, `name[0]=a` or `name=a`. Unknown parameters are ignored.\n\n"
    )
    included = {name: mappings.includable(name) for name in PLURALS}
    rows = [
        (kind(response_schemas.ref(name)), code(_ordered(mappings, name, fields)))
        for name, fields in included.items()
        if fields
    ]
    includable = "Fields of `include[]`:\n\n" + table(("object", "fields"), rows)
    return forms + _table((v3_parameters.APIKEY, *v3_parameters.GLOBALS)) + includable


def _ordered(mappings: loader.Mappings, name: str, fields: frozenset[str]) -> list[str]:
    return [field for field in mappings.rules[name].fields if field in fields]


def _actions() -> list[Section]:
    """Return one section for each group of endpoints with the same parameters."""
    groups: dict[tuple[Action, tuple[Parameter, ...]], list[Endpoint]] = defaultdict(list)
    for endpoint in ENDPOINTS:
        groups[endpoint.action, v3_parameters.of(endpoint)].append(endpoint)
    order = list(ACTIONS)
    ordered = sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    return [(_title(action, group), _action(own_parameters, group)) for (action, own_parameters), group in ordered]


def _title(action: Action, group: list[Endpoint]) -> str:
    plurals = [PLURALS[name] for name in dict.fromkeys(endpoint.object for endpoint in group)]
    return f"{ACTIONS[action]} of {joined(', '.join(plurals))}" if action == "search" else ACTIONS[action]


def _action(own_parameters: tuple[Parameter, ...], group: list[Endpoint]) -> str:
    text = f"{code(endpoint.path for endpoint in group)}\n\n{_table(own_parameters)}"
    if group[0].action == "match":
        text += "A query is an object. An error of one query is its `error`; the others are executed.\n\n"
        text += _table(v3_parameters.QUERY, "key")
    return text


def _table(described: tuple[Parameter, ...], first: str = "parameter") -> str:
    rows = [
        (code([each.name]), value(each), default(each), each.meaning, f"v3-rest.md {each.source}") for each in described
    ]
    return table((first, "value", "default", "meaning", "contract"), rows)


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


def _lists(mappings: loader.Mappings) -> str:
    uses: tuple[field_names.Use, ...] = ("filter", "stats")
    rows = [
        (kind(response_schemas.ref(name)), *(code(field_names.usable(mappings, name, use)) or "none" for use in uses))
        for name in PLURALS
        if name != "Part"
    ]
    return table(("object", "filter, facet, sortby", "stats"), rows)


def _order(mappings: loader.Mappings) -> list[str]:
    """Return the objects in reading order: a part, then the objects in it, then the others."""
    ordered: list[str] = []
    waiting = ["Part", *mappings.rules]
    while waiting:
        name = waiting.pop(0)
        if name not in ordered:
            ordered.append(name)
            targets = [mappings.rules[name].rule(field).target for field in mappings.rules[name].fields]
            # In front, so that an object is followed by those in it.
            waiting[:0] = [target for target in targets if target]
    return ordered


def _counted(mappings: loader.Mappings) -> str:
    count = Counter(row.kind for row in coverage.of_mappings(mappings))
    numbers = ", ".join(f"{number} {word}" for word, number in count.most_common())
    return f"{count.total()} fields: {joined(numbers)}.\n\n"


def _object(mappings: loader.Mappings, name: str) -> str:
    rows = [row for row in coverage.of_mappings(mappings) if row.object == name]
    class_name = mappings.rules[name].class_
    class_note = {None: "", "": "It has no `__class__`. "}.get(class_name, f"Its `__class__` is `{class_name}`. ")
    lines = [
        (_field(row), kind(object_schemas.field(mappings, name, row.field)), row.kind, _read(row), _why(mappings, row))
        for row in rows
    ]
    return f"{class_note}Source: {rows[0].source}.\n\n" + table(
        ("field", "type", "coverage", "read from", "how, or why"), lines
    )


def _field(row: coverage.FieldCoverage) -> str:
    marks = ["`include[]`"] * row.include + [f"feature {row.feature}"] * bool(row.feature)
    return code([row.field]) + (f" ({', '.join(marks)})" if marks else "")


def _read(row: coverage.FieldCoverage) -> str:
    return code([row.upstream]) if row.upstream else ""


def _why(mappings: loader.Mappings, row: coverage.FieldCoverage) -> str:
    """Return the note on a field; for a constant only its reason, because its value is shown as its type."""
    return (mappings.rules[row.object].rule(row.field).why or "") if row.kind == "constant" else row.note


def _envelope(envelope: response_schemas.ResponseObject) -> str:
    class_note = {None: "It has no `__class__`.\n\n", envelope.name: ""}.get(
        envelope.class_, f"Its `__class__` is `{envelope.class_}`.\n\n"
    )
    rows = [(code([each.name]), kind(each.schema), each.meaning) for each in envelope.fields]
    return class_note + table(("field", "type", "what is in it"), rows)


def _errors() -> str:
    rows = [
        (each.status, kind(response_schemas.ref(each.v3_class)), (each.__doc__ or "").partition("\n")[0])
        for each in response_schemas.error_types()
    ]
    return table(("status", "body", "when"), rows)
