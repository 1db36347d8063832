"""Page docs/v3-today.md: paths, parameters, fields with their sources, what searches support, and errors.

`python -m docs` writes it. Its words and tables are in surface.md.j2.
"""

import json
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from proxy import errors, model
from proxy.mapping import loader, paths
from proxy.mapping.rules import FieldRule, ObjectRules
from proxy.mapping.schema import SCALARS
from proxy.planning import match, mpn_search, search_filters
from proxy.v3 import bounds, headers
from proxy.v3.description import markdown, spec_keys
from proxy.v3.endpoints import ENDPOINTS, PREFIXES
from proxy.v3.parameters import FALSE, TRUE
from proxy.v3.parsing import v3_parameters

SPECS, A_SPEC = "specs.<key>.value", "specs.resistance.value"  # support is the same for all specs
NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "list", dict: "object"}
LISTS = ("Brand", "Category", "Seller")
RESPONSES = {"match": "a result for each query", "search": "a page of {}", "get_multi": "object of {}", "get": "{}"}


# Endpoints that do the same with different objects, by their action, and their parameters.
GROUPS = (
    ("Match part numbers", "match", v3_parameters.MATCH),
    ("Search", "search", (*v3_parameters.SEARCH, *v3_parameters.DRILLDOWN)),
    ("Several by uid", "get_multi", v3_parameters.GET_MULTI),
    ("One by uid", "get", v3_parameters.GET),
)


def page(mappings: loader.Mappings) -> str:
    specs = search_filters.field_support(mappings.tables, A_SPEC)
    return markdown.render(
        "surface.md.j2",
        prefixes=PREFIXES,
        endpoints=[(each, RESPONSES[each.action].format(markdown.reference(each.object))) for each in ENDPOINTS],
        true_words=sorted(TRUE - {""}),
        false_words=sorted(FALSE),
        rows=lambda parameters: [(f"`{each.name}`", each.value, each.meaning) for each in parameters],
        shared=(v3_parameters.APIKEY, *v3_parameters.GLOBALS),
        included={name: sorted(mappings.includable(name)) for name in ("Part", *LISTS)},
        groups=[(*each, [endpoint.path for endpoint in ENDPOINTS if endpoint.action == each[1]]) for each in GROUPS],
        query=v3_parameters.QUERY,
        bounds=[each for each in vars(bounds).values() if isinstance(each, bounds.Bound)],
        request_line=bounds.REQUEST_LINE,
        patterns_max=bounds.PATTERNS.maximum,
        headers=headers,
        mpns_max=mpn_search.MPNS_MAX,
        candidates=match.CANDIDATES,
        parts_max=model.PARTS_MAX,
        search_fields=mappings.tables.search | ({SPECS: specs} if specs else {}),
        specs=SPECS,
        list_fields={name: list(mappings.rules[name].fields) for name in LISTS},
        objects={name: mappings.rules[name] for name in _order(mappings)},
        kind=lambda object_, rule: _kind(mappings, object_, rule),
        note=_note,
        errors=_errors(),
        **spec_keys.tables(mappings),
    )


def _order(mappings: loader.Mappings) -> list[str]:
    """Return the objects in reading order: each is followed by those in its fields."""
    ordered: list[str] = []
    waiting = ["Part", *mappings.rules]
    while waiting:
        name = waiting.pop(0)
        if name not in ordered:
            ordered.append(name)
            rules = mappings.rules[name]
            waiting[:0] = [target for field in rules.fields if (target := rules.rule(field).target)]
    return ordered


def _note(rule: FieldRule) -> str:
    lacking = "no source: " if rule.none is not None else "constant: " if rule.constant else ""
    kind = lacking or ("derived: " if rule.derived else "")
    return kind + "; ".join(filter(None, (rule.none, rule.derived, rule.why)))


def _kind(mappings: loader.Mappings, object_: ObjectRules, rule: FieldRule) -> str:
    """Return the type of a field in a few words; objects on the page are links."""
    if rule.constant:
        value = rule.blank if rule.none is not None else rule.always
        return "null" if value is None else f"`{json.dumps(value)}`"
    if rule.target and not rule.is_:
        return f"{'list' if rule.each else 'object'} of {markdown.reference(rule.target)}"
    plain, may_be_blank = _read(mappings, object_, rule)
    blank = _named(type(rule.blank))
    return f"{plain} or {blank}" if (may_be_blank or rule.feature) and blank not in plain.split() else plain


def _read(mappings: loader.Mappings, object_: ObjectRules, rule: FieldRule) -> tuple[str, bool]:
    """Return the type of what a rule reads, and whether it may be null."""
    route = paths.parse(rule.paths if isinstance(rule.paths, str) else ".")
    kind, is_list, may_be_null = (object_.under if route.origin == "above" else object_.reads) or "", False, False
    for step in route.steps:
        field = mappings.schema.field(kind, step.name)
        assert field is not None  # noqa: S101 - the mapping is compiled
        kind, is_list, may_be_null = field.name, is_list or field.is_list, may_be_null or field.nullable
    if rule.is_:
        return markdown.reference(rule.is_), may_be_null or rule.only is not None
    if rule.through:
        return _named(get_type_hints(mappings.transforms[rule.through])["return"]), may_be_null
    return f"{'list of ' if is_list else ''}{_named(SCALARS[kind])}", may_be_null


def _named(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Annotated:
        return _named(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return " or ".join(map(_named, get_args(hint)))
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in get_args(hint))
    if origin is list:
        return f"list of {_named(get_args(hint)[0])}"
    return "null" if hint is type(None) else NAMES.get(origin or hint, "any")


def _errors() -> list[tuple[int, str]]:
    """Return the status of every error that a client can get, with its meaning."""
    leaves = [*_leaves(errors.ClientError), *_leaves(errors.ServerError)]
    leaves += [errors.UpstreamUnreadable, errors.ServerError]
    leaves.remove(errors.UpstreamLoop)  # of GraphQL paths only
    meanings: dict[int, list[str]] = {}
    for kind in leaves:
        meanings.setdefault(kind.status, []).append((kind.__doc__ or "").partition("\n")[0])
    return [(status, " ".join(texts)) for status, texts in sorted(meanings.items())]


def _leaves(kind: type[errors.BridgeError]) -> list[type[errors.BridgeError]]:
    # A leaf is what a client can tell: the classes above it only group. An expired key is refused like an unknown one.
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__ and each != errors.ExpiredKey]
    return [leaf for each in below for leaf in _leaves(each)] if below else [kind]
