"""Page docs/v3-today.md: paths, parameters, fields with their sources, what searches support, and errors.

`python -m docs` writes it. Its words and tables are in surface.md.j2.
"""

import json
import re

from proxy import errors, model
from proxy.mapping import loader
from proxy.mapping.rules import FieldRule, ObjectRules
from proxy.planning import match, mpn_search, search_filters
from proxy.v3 import bounds, headers
from proxy.v3.description import markdown, spec_keys
from proxy.v3.endpoints import ENDPOINTS, PREFIXES
from proxy.v3.parameters import FALSE, TRUE
from proxy.v3.parsing import v3_parameters

SPECS, A_SPEC = "specs.<key>.value", "specs.resistance.value"  # support is the same for all specs
LISTS = ("Brand", "Category", "Seller")
FIRST_SENTENCE = re.compile(r"[^.;]+")
CITATION = re.compile(r" \(contract [^)]*\)")
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
        plain=_plain,
        noted=_noted,
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


def _plain(rules: ObjectRules) -> list[str]:
    """Return the fields whose value is the upstream's own, for every request and plan."""
    return [field for field in rules.fields if not _note(rules.rule(field))]


def _noted(rules: ObjectRules) -> list[tuple[str, FieldRule]]:
    return [(field, rules.rule(field)) for field in rules.fields if _note(rules.rule(field))]


def _note(rule: FieldRule) -> str:
    """Return what there is to say of a field, in a few words."""
    kind = "derived: " if rule.derived else ""
    if rule.constant:
        kind = "no source: " if rule.none is not None else f"always `{json.dumps(rule.always)}`: "
    needs = ["`include[]`"] * rule.include + [f"feature {rule.feature}"] * bool(rule.feature)
    reasons = "; ".join(filter(None, (rule.none, rule.derived, rule.why)))
    return "; ".join(filter(None, (*needs, kind + reasons)))


def _errors() -> list[tuple[int, str]]:
    """Return the status of every error that a client can get, with its meaning."""
    leaves = [*_leaves(errors.ClientError), *_leaves(errors.ServerError)]
    leaves += [errors.UpstreamUnreadable, errors.ServerError]
    leaves.remove(errors.UpstreamLoop)  # of GraphQL paths only
    meanings: dict[int, list[str]] = {}
    for kind in leaves:
        meaning = FIRST_SENTENCE.match(CITATION.sub("", kind.__doc__ or ""))
        meanings.setdefault(kind.status, []).append(f"{meaning[0]}." if meaning else "")
    return [(status, " ".join(texts)) for status, texts in sorted(meanings.items())]


def _leaves(kind: type[errors.BridgeError]) -> list[type[errors.BridgeError]]:
    # A leaf is what a client can tell: the classes above it only group. An expired key is refused like an unknown one.
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__ and each != errors.ExpiredKey]
    return [leaf for each in below for leaf in _leaves(each)] if below else [kind]
