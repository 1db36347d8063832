"""Structural diff of two JSON documents. Pure; optimised for documents that are nearly equal.

Equal subtrees are not walked; list elements are matched by identity (matching.py). Rules and causes are applied later.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from proxy.tools.compare.judging import identity, json_values, matching, paths, unknown_uids
from proxy.tools.compare.judging.findings import Difference, Kind

UID = re.compile(r"[0-9a-f]{16}")
OWN = frozenset(("uid", "parent_uid"))  # fields whose uids v3bridge computes where v3's is not known
# Texts of these fields are compared as texts: the part numbers 1.5 and 1.50 are two parts.
NAMES = frozenset(("uid", "mpn", "sku", "id", "_naive_id", "name", "reference", "q", "mpn_or_sku", "brand", "seller"))
JSON_TYPES = {dict: "object", list: "list", str: "text", int: "number", Decimal: "number", bool: "boolean"}

ElementLabel = tuple[str | None, int]  # identifying text of an element, and its ordinal among those with the same


class ValuePair(NamedTuple):
    """Two corresponding values. `name` is the key of the field that holds them, `within` the key of the enclosing
    field."""

    baseline: Any
    candidate: Any
    path: str = paths.ROOT
    place: str = paths.ROOT
    name: str = ""
    within: str = ""


def diff(baseline: Any, candidate: Any) -> list[Difference]:
    """Diff two JSON values as `json_values.read` returns them; differences are in the order of the baseline."""
    found: list[Difference] = []
    # Two containers are compared element by element: comparing them as a whole first would only repeat the work.
    whole = type(baseline) is type(candidate) and type(baseline) in (dict, list)
    # A list of pending pairs instead of recursion: responses may be nested deeper than Python's stack.
    pending = [ValuePair(baseline, candidate)] if whole or not json_values.same(baseline, candidate) else []
    while pending:
        differences, pairs = _step(pending.pop())
        found += differences
        # The last element is compared next, so reversing keeps the order of the document.
        pending += reversed(pairs)
    return found


def _step(pair: ValuePair) -> tuple[list[Difference], list[ValuePair]]:
    """Compare one pair: return its own differences, and the unequal pairs inside it."""
    if type(pair.baseline) is dict and type(pair.candidate) is dict:
        return _objects(pair)
    if type(pair.baseline) is list and type(pair.candidate) is list:
        return _lists(pair)
    kind = _kind(pair.baseline, pair.candidate, pair.name)
    return [Difference(kind, pair.path, pair.place, pair.baseline, pair.candidate)], []


def _objects(pair: ValuePair) -> tuple[list[Difference], list[ValuePair]]:
    baseline, candidate = pair.baseline, pair.candidate

    def at(key: str) -> tuple[str, str]:
        if pair.path == paths.ROOT and UID.fullmatch(key):  # get_multi responds with an object whose keys are uids
            return paths.each(pair.path), paths.element(pair.place, key)
        return paths.field(pair.path, key), paths.field(pair.place, key)

    found = [Difference("missing", *at(key), baseline=baseline[key]) for key in baseline if key not in candidate]
    found += [Difference("extra", *at(key), candidate=candidate[key]) for key in candidate if key not in baseline]
    changed = [key for key, was in baseline.items() if key in candidate and not json_values.same(was, candidate[key])]
    apart = {key for key in changed if key in OWN and unknown_uids.same_object(key, baseline, candidate, pair.name)}
    found += [
        Difference(
            unknown_uids.KIND, *at(key), baseline[key], candidate[key], name=unknown_uids.object_name(key, baseline)
        )
        for key in baseline
        if key in apart
    ]
    return found, [
        ValuePair(baseline[key], candidate[key], *at(key), key, pair.name) for key in changed if key not in apart
    ]


def _lists(pair: ValuePair) -> tuple[list[Difference], list[ValuePair]]:
    known = identity.for_list(pair.name, pair.within, (*pair.baseline[:1], *pair.candidate[:1]))
    matched = matching.match(pair.baseline, pair.candidate, known)
    baseline, candidate = _labels(pair, matched, known)
    path = paths.each(pair.path)

    def at(label: ElementLabel) -> tuple[str, str]:
        return path, paths.element(pair.place, *label)

    missing, extra = ({n: pair.baseline[n] for n in matched.missing}, {n: pair.candidate[n] for n in matched.extra})
    if unknown_uids.same_list(pair.name, pair.within, missing, extra):
        found = [Difference(unknown_uids.KIND, path, f"{pair.place}[*]", [*missing.values()], [*extra.values()])]
    else:
        found = [Difference("missing", *at(baseline[each]), baseline=was) for each, was in missing.items()]
        found += [Difference("extra", *at(label), candidate=pair.candidate[each]) for each, label in candidate.items()]
    # One difference for the whole list: a moved element shifts all others.
    if matched.moved:
        before, after = ([paths.element(paths.ROOT, *baseline[each]) for each in order] for order in matched.orders())
        found.append(Difference("order", pair.path, pair.place, before, after))
    pairs = (
        ValuePair(pair.baseline[was], pair.candidate[now], *at(baseline[was]), pair.name, pair.within)
        for was, now in matched.changed
    )
    return found, [each for whole in pairs for each in _inside(whole)]


def _inside(element: ValuePair) -> Iterator[ValuePair]:
    """Yield the pairs to compare inside a list element; quantity and amount of a price break are separate pairs."""
    baseline, candidate = element.baseline, element.candidate
    if type(baseline) is not list or type(candidate) is not list:
        yield element
    elif element.within == "prices" and len(baseline) == 2 == len(candidate):
        for at, path, place in (
            (0, paths.field(element.path, "quantity"), paths.field(element.place, "quantity")),
            (1, element.path, element.place),
        ):
            if not json_values.same(baseline[at], candidate[at]):
                yield ValuePair(baseline[at], candidate[at], path, place, "prices")
    else:
        yield element._replace(name="", within="")


def _labels(
    pair: ValuePair, matched: matching.ListMatching, known: identity.ElementIdentity
) -> tuple[list[ElementLabel], dict[int, ElementLabel]]:
    """Label the elements of the baseline, and those that only the candidate has."""
    if known.by_position:
        return [(str(at), 1) for at in range(len(pair.baseline))], {at: (str(at), 1) for at in matched.extra}
    turns: dict[str | None, int] = {}

    def next_of(element: Any) -> ElementLabel:
        label = known.label(element)
        turns[label] = turn = turns.get(label, 0) + 1
        return label, turn

    return [next_of(each) for each in pair.baseline], {at: next_of(pair.candidate[at]) for at in matched.extra}


def _kind(baseline: Any, candidate: Any, name: str) -> Kind:
    """Classify two unequal values, of which at most one is an object or a list."""
    kinds = {JSON_TYPES.get(type(baseline)), JSON_TYPES.get(type(candidate))}
    if len(kinds) > 1:
        return "type"
    is_same = kinds == {"number"} and baseline == candidate
    if kinds == {"text"} and name not in NAMES:
        is_same = json_values.spelling_key(baseline) == json_values.spelling_key(candidate)
    return "format" if is_same else "value"
