"""Page docs/reference/v3-surface.md: every path, parameter, field and error, from the OpenAPI description; from the
mappings, which it leaves out, the source of each field and what searches support.

`python -m docs.v3_surface` prints it. Its words and tables are in surface.md.j2.
"""

import itertools
import json
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from proxy import model
from proxy.mapping import coverage, loader
from proxy.planning import match, mpn_search, search_filters
from proxy.v3 import bounds, headers
from proxy.v3.description import field_names, markdown, openapi, spec_keys
from proxy.v3.description.response_schemas import Schema
from proxy.v3.endpoints import PREFIXES
from proxy.v3.parameters import FALSE, TRUE
from proxy.v3.parsing.v3_parameters import FIELD

REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')
LIKE_PARTS = re.compile("(Brand|Category|Seller)Search")  # schemas like those of parts
SEARCHED = re.compile(r"(?:part|brand|category|seller)(search(?:response|result))\b", re.IGNORECASE)  # anchors, too
JSON = {"type": "JSON"}  # shown type of a parameter with JSON content

Operations = dict[str, Any]
"""Operations of the description by path."""


class ParameterRow(NamedTuple):
    """A parameter, or a key of a query, in a table."""

    parameter: str
    value: str
    meaning: str
    source: str


class EndpointGroup(NamedTuple):
    """Endpoints that do the same with different objects, and the parameters that not all endpoints have."""

    title: str
    paths: list[str]
    rows: list[ParameterRow]
    query_keys: list[ParameterRow]


def page(mappings: loader.Mappings) -> str:
    document = openapi.document(mappings)
    components = document["components"]
    schemas: dict[str, Schema] = components["schemas"]
    operations = {path: item["get"] for path, item in document["paths"].items()}
    names = _order(schemas, ["Part", *mappings.rules])
    shared = _shared(operations.values())
    fields = coverage.of_mappings(mappings)
    around = [name for name in _order(schemas, schemas) if name not in {*names, "Trace"} and not LIKE_PARTS.match(name)]
    specs = search_filters.field_support(mappings.tables, field_names.A_SPEC)

    def class_note(name: str) -> str:
        class_name = schemas[name]["properties"].get("__class__", {}).get("const")
        return "" if class_name in (None, SEARCHED.sub(r"\1", name)) else f"Its `__class__` is `{class_name}`. "

    def how(row: coverage.FieldCoverage) -> str:
        rule = mappings.rules[row.object].rule(row.field)
        # The type column shows the value of a constant, and of a field without source.
        reasons = {"exact": row.note, "derived": row.note, "constant": rule.why or "", "no source": rule.none or ""}
        return reasons[row.kind] if row.kind == "exact" else f"{row.kind}: {reasons[row.kind]}"

    text = markdown.render(
        "surface.md.j2",
        prefixes=PREFIXES,
        operations=operations,
        true_words=sorted(TRUE - {""}),
        false_words=sorted(FALSE),
        columns=["parameter", "value", "meaning"],
        cells=lambda rows: [row[:3] for row in rows],
        sources=_sources,
        merged=_merged,
        shared=[_apikey(components["securitySchemes"]["apikey"]), *shared],
        included={operation["tags"][0]: _included(operation) for operation in operations.values()},
        groups=list(_groups(operations, shared)),
        bounds=bounds,
        headers=headers,
        mpns_max=mpn_search.MPNS_MAX,
        candidates=match.CANDIDATES,
        parts_max=model.PARTS_MAX,
        search_fields=mappings.tables.search | ({field_names.SPECS: specs} if specs else {}),
        specs=field_names.SPECS,
        list_searches={
            operation["tags"][0]: _parameters(operation)
            for path, operation in operations.items()
            if "/search" in path and operation["tags"][0] != "Part"
        },
        counts=Counter(row.kind for row in fields),
        objects={name: [row for row in fields if row.object == name] for name in names},
        around=around,
        schemas=schemas,
        class_note=class_note,
        without_class=[name for name in around if "__class__" not in schemas[name]["properties"]],
        how=how,
        responses=components["responses"],
        **spec_keys.tables(mappings),
    )
    return SEARCHED.sub(r"\1", text)


def _sources(rows: Iterable[ParameterRow]) -> str:
    """Return the sections of the contract that parameters are from."""
    return "v3-rest.md " + ", ".join(dict.fromkeys(row.source.removeprefix("v3-rest.md ") for row in rows))


def _merged(properties: dict[str, Schema]) -> list[tuple[list[str], Schema]]:
    """Return the schemas of fields, each once for neighbors that it is the same for."""
    fields = ((name, schema) for name, schema in properties.items() if name != "__class__")
    return [
        ([name for name, _ in same], schema) for schema, same in itertools.groupby(fields, key=operator.itemgetter(1))
    ]


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


def _shared(operations: Iterable[dict[str, Any]]) -> list[ParameterRow]:
    """Return the parameters that all operations have."""
    first, *others = (list(_rows(operation)) for operation in operations)
    return [row for row in first if all(row in rows for rows in others)]


def _apikey(key: dict[str, Any]) -> ParameterRow:
    return _row(key["name"], {**key, "type": "string"}, required=True)


def _included(operation: dict[str, Any]) -> list[str]:
    """Return the fields that include[] can name."""
    names: list[str] = _parameters(operation)["include[]"]["schema"]["items"].get("anyOf", [{"enum": []}])[0]["enum"]
    return names


def _parameters(operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters of an operation by name, without those in headers."""
    return {parameter["name"]: parameter for parameter in operation["parameters"] if "name" in parameter}


def _groups(operations: Operations, shared: list[ParameterRow]) -> Iterator[EndpointGroup]:
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
            row if len(having) == len(group) else row._replace(meaning=f"{row.meaning}; only {markdown.code(having)}")
            for row, having in paths.items()
        ]
        yield EndpointGroup(title, list(group), rows, [row for each in group.values() for row in _query_keys(each)])


def _query_keys(operation: dict[str, Any]) -> list[ParameterRow]:
    """Return the keys of a query, for an operation that has queries."""
    queries = _parameters(operation).get("queries")
    if queries is None:
        return []
    keys = queries["content"]["application/json"]["schema"]["items"]["properties"]
    return [_row(name, schema) for name, schema in keys.items()]


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
    if "maximum" in value:
        shown = f"0 to {value['maximum']}"
    else:
        shown = "list of string" if value.get("type") == "array" else markdown.kind(value)
    if required:
        shown += ", required"
    elif (default := json.dumps(value.get("default", ""))) not in ('""', "false"):
        shown += f", default `{default}`"
    return ParameterRow(markdown.code([name]), shown, schema["description"], schema[openapi.CONTRACT])
