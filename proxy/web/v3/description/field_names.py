"""Which fields the parameters of an endpoint can name: for markdown.py and openapi.py.

Parts are searched by the service, which can do what mappings/search.yaml says. Brands, sellers and categories are
searched here, by every field that they have.
"""

from typing import Literal

from proxy.mapping import loader
from proxy.planning import spec_fields
from proxy.web.v3.description import object_schemas
from proxy.web.v3.description.parameters import FIELD, Parameter

SPECS = "specs.<key>.value"
A_SPEC = "specs.resistance.value"  # one for all: the service can do the same with each
SPECS_PATTERN = f"^{spec_fields.SPEC.pattern}$"
Use = Literal["filter", "facet", "stats", "sort"]
USES: dict[str | None, Use] = {"filter[fields]": "filter", "facet[fields]": "facet", "stats": "stats"}


def named(mappings: loader.Mappings, name: str, parameter: Parameter) -> list[str]:
    """The fields of object `name` that a parameter can name, specs not among them; none where it names no fields."""
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
    """The fields that a search of such objects can filter, count or sort by; specs go without saying."""
    if name == "Part":
        return [field for field, can in mappings.tables.search.items() if _can(can, use)]
    shown = mappings.rules[name].fields
    return [field for field in shown if use != "stats" or _is_number(mappings, name, field)]


def takes_specs(name: str, parameter: Parameter) -> bool:
    """Whether a parameter can name `specs.<key>.value` too."""
    return name == "Part" and (parameter.head in USES or parameter.name == "sortby")


def _can(can: object, use: Use) -> bool:
    others = ("stock", "number") if use == "filter" else ()
    return any(getattr(can, name, False) for name in (use, *others))


def _is_number(mappings: loader.Mappings, name: str, field: str) -> bool:
    return object_schemas.field(mappings, name, field).get("type") in ("integer", "number")
