"""Fields that the parameters of an endpoint can name, for the generated documentation and the OpenAPI description.

Parts are searched upstream, with the support listed in mappings/search.yaml. Brands, sellers and categories are
searched in this process, by all of their fields.
"""

from typing import Literal

from proxy.mapping import loader
from proxy.planning import spec_fields
from proxy.v3.description import object_schemas
from proxy.v3.parsing.v3_parameters import FIELD, Parameter

SPECS = "specs.<key>.value"
A_SPEC = "specs.resistance.value"  # an example: support is the same for all specs
SPECS_PATTERN = f"^{spec_fields.SPEC.pattern}$"
Use = Literal["filter", "facet", "stats", "sort"]
USES: dict[str | None, Use] = {"filter[fields]": "filter", "facet[fields]": "facet", "stats": "stats"}


def named(mappings: loader.Mappings, name: str, parameter: Parameter) -> list[str]:
    """Return the fields of object `name` that a parameter can name, without specs; empty for a parameter without
    fields."""
    match parameter.name:
        case "include[]":
            return [field for field in mappings.rules[name].fields if field in mappings.includable(name)]
        case "show[]" | "hide[]":
            return object_schemas.paths_of(mappings, name)
        case "sortby":
            return ["score", *usable(mappings, name, "sort")]
        case slices if slices == f"slice[{FIELD}]":
            return object_schemas.lists_of(mappings, name)
    use = USES.get(parameter.head)
    return usable(mappings, name, use) if use else []


def usable(mappings: loader.Mappings, name: str, use: Use) -> list[str]:
    """Return the fields, without specs, that a search of such objects can filter, count or sort by."""
    if name == "Part":
        return [field for field, entry in mappings.tables.search.items() if _supports(entry, use)]
    shown = mappings.rules[name].fields
    return [field for field in shown if use != "stats" or _is_number(mappings, name, field)]


def takes_specs(name: str, parameter: Parameter) -> bool:
    """Return whether a parameter can also name `specs.<key>.value`."""
    return name == "Part" and (parameter.head in USES or parameter.name == "sortby")


def _supports(entry: object, use: Use) -> bool:
    further = ("stock", "number") if use == "filter" else ()
    return any(getattr(entry, name, False) for name in (use, *further))


def _is_number(mappings: loader.Mappings, name: str, field: str) -> bool:
    return object_schemas.field(mappings, name, field).get("type") in ("integer", "number")
