"""Structural diff of two JSON documents. Pure; optimised for documents that are nearly equal.

Equal subtrees are not walked; list elements are matched by identity (matching.py). Rules and causes are applied later.
"""

import re
from decimal import Decimal
from typing import Any, NamedTuple

from proxy.tools.compare.judging import json_values, matching, paths, unknown_uids
from proxy.tools.compare.judging.findings import Difference, Kind

UID = re.compile(r"[0-9a-f]{16}")
OWN = frozenset(("uid", "parent_uid"))  # fields whose uids v3bridge computes where v3's is not known
# Texts of these fields are compared as texts: the part numbers 1.5 and 1.50 are two parts.
NAMES = frozenset(("uid", "mpn", "sku", "id", "_naive_id", "name", "reference", "q", "mpn_or_sku", "brand", "seller"))
JSON_TYPES = {dict: "object", list: "list", str: "text", int: "number", Decimal: "number", bool: "boolean"}


class ValuePair(NamedTuple):
    """Two corresponding values. `name` is the key of the field that holds them, `within` the key of the enclosing
    field."""

    baseline: Any
    candidate: Any
    path: str = paths.ROOT
    place: str = paths.ROOT
    name: str = ""
    within: str = ""

    def at(self, key: str) -> tuple[str, str]:
        """Return path and place of a field of the two objects."""
        if self.path == paths.ROOT and UID.fullmatch(key):  # get_multi responds with an object whose keys are uids
            return paths.each(self.path), paths.element(self.place, key)
        return paths.field(self.path, key), paths.field(self.place, key)


def diff(baseline: Any, candidate: Any) -> list[Difference]:
    """Diff two JSON values as `json_values.read` returns them; differences are in the order of the baseline."""
    found: list[Difference] = []
    # Two containers are compared element by element: comparing them as a whole first would only repeat the work.
    whole = type(baseline) is type(candidate) and type(baseline) in (dict, list)
    # A list of pending pairs instead of recursion: responses may be nested deeper than Python's stack.
    pending = [ValuePair(baseline, candidate)] if whole or not json_values.same(baseline, candidate) else []
    while pending:
        pair = pending.pop()
        if type(pair.baseline) is dict and type(pair.candidate) is dict:
            differences, pairs = _objects(pair)
        elif type(pair.baseline) is list and type(pair.candidate) is list:
            differences, pairs = _lists(pair)
        else:
            one, other = pair.baseline, pair.candidate
            kinds = {JSON_TYPES.get(type(one)), JSON_TYPES.get(type(other))}
            is_same = kinds == {"number"} and one == other
            if kinds == {"text"} and pair.name not in NAMES:
                is_same = json_values.spelling_key(one) == json_values.spelling_key(other)
            kind: Kind = "type" if len(kinds) > 1 else "format" if is_same else "value"
            differences, pairs = [Difference(kind, pair.path, pair.place, one, other)], []
        found += differences
        # The last element is compared next, so reversing keeps the order of the document.
        pending += reversed(pairs)
    return found


def _objects(pair: ValuePair) -> tuple[list[Difference], list[ValuePair]]:
    baseline, candidate, at = pair.baseline, pair.candidate, pair.at
    found = [Difference("missing", *at(key), baseline=baseline[key]) for key in baseline if key not in candidate]
    found += [Difference("extra", *at(key), candidate=candidate[key]) for key in candidate if key not in baseline]
    changed = [key for key, was in baseline.items() if key in candidate and not json_values.same(was, candidate[key])]
    names = {key: unknown_uids.same_object(key, baseline, candidate, pair.name) for key in changed if key in OWN}
    apart = {key: name for key, name in names.items() if name is not None}
    found += [
        Difference(unknown_uids.KIND, *at(key), baseline[key], candidate[key], name=name) for key, name in apart.items()
    ]
    return found, [
        ValuePair(baseline[key], candidate[key], *at(key), key, pair.name) for key in changed if key not in apart
    ]


def _lists(pair: ValuePair) -> tuple[list[Difference], list[ValuePair]]:
    matched = matching.match(pair.name, pair.within, pair.baseline, pair.candidate)
    labels, path = matched.baseline_labels, paths.each(pair.path)
    places = [paths.element(pair.place, *label) for label in labels]
    missing, extra = ({n: pair.baseline[n] for n in matched.missing}, {n: pair.candidate[n] for n in matched.extra})
    if unknown_uids.same_list(pair.name, pair.within, missing, extra):
        found = [Difference(unknown_uids.KIND, path, f"{pair.place}[*]", [*missing.values()], [*extra.values()])]
    else:
        found = [Difference("missing", path, places[each], baseline=was) for each, was in missing.items()]
        found += [
            Difference("extra", path, paths.element(pair.place, *label), candidate=extra[each])
            for each, label in matched.extra_labels.items()
        ]
    # One difference for the whole list: a moved element shifts all others.
    if matched.orders:
        before, after = ([paths.element(paths.ROOT, *labels[each]) for each in order] for order in matched.orders)
        found.append(Difference("order", pair.path, pair.place, before, after))
    inner: list[ValuePair] = []
    for was, now in matched.changed:
        one, other, place = pair.baseline[was], pair.candidate[now], places[was]
        if type(one) is not list or type(other) is not list:
            inner.append(ValuePair(one, other, path, place, pair.name, pair.within))
        elif pair.within == "prices" and len(one) == 2 == len(other):  # quantity and amount of a price break
            breaks = (
                ValuePair(one[0], other[0], paths.field(path, "quantity"), paths.field(place, "quantity"), "prices"),
                ValuePair(one[1], other[1], path, place, "prices"),
            )
            inner += [each for each in breaks if not json_values.same(each.baseline, each.candidate)]
        else:
            inner.append(ValuePair(one, other, path, place))
    return found, inner
